-- Checksum of each version and its digest; see the migration of SQLite. Releases that don't know it write none.
alter table vitrine.product_version add column if not exists checksum bytea;

-- Confirmations of acts in the audit log; see the migration of SQLite.

alter table vitrine.audit_entry add column if not exists confirmation text;
create unique index if not exists audit_confirmation on vitrine.audit_entry (confirmation) where confirmation is not null;
