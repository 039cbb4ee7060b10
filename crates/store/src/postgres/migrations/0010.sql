-- Documents lie in a table of their own, packed, and bases have the columns of versions; see the migration of SQLite.

-- Rows up to a page stay in one piece: a server's start reads all of them.
create table if not exists vitrine.product_document (
    product_version_id  bigint primary key references vitrine.product_version (id),
    document            bytea not null -- zstd
) with (toast_tuple_target = 8160);
-- It is compressed already.
alter table vitrine.product_document alter column document set storage external;
alter table vitrine.product_version drop column if exists document, reset (toast_tuple_target);

alter table vitrine.base_version drop column if exists product,
    add column if not exists content_start bigint,
    add column if not exists content_end bigint,
    add column if not exists discount_multiplier text not null default '',
    add column if not exists is_orderable boolean not null default false,
    add column if not exists countries text not null default '',
    add column if not exists categories text not null default '',
    add column if not exists own_texts text not null default '', -- JSON array
    add column if not exists document bytea not null default ''; -- zstd
alter table vitrine.base_version alter column document set storage external;
