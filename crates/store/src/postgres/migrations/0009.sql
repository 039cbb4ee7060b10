-- Checksum of each version and its digest; see the migration of SQLite. Releases that don't know it write none.
alter table vitrine.product_version add column if not exists checksum bytea;
