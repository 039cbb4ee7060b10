-- Checksum of each version and its digest, by which reading finds damage in a tenth of the time. Null in versions of earlier
-- releases: these are compared with the digest.
alter table product_version add column checksum blob;

-- SHA-256 of the confirmation in the console that led to the entry: one that is sent again, at any server, does nothing.

alter table audit_entry add column confirmation text; -- hexadecimal; null: by a command, or not the first entry of its act
create unique index audit_confirmation on audit_entry (confirmation) where confirmation is not null;
