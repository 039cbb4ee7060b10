-- Checksum of each version and its digest, by which reading finds damage in a tenth of the time. Null in versions of earlier
-- releases: these are compared with the digest.
alter table product_version add column checksum blob;
