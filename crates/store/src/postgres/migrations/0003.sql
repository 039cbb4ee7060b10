-- The history of changes; see ../../sqlite/migrations/0003.sql. Releases that don't know it step the counter without a
-- row, and restore without a former id: readers see both as gaps.

-- Servers read revisions meanwhile, and would queue behind this wait for the table.
set local lock_timeout = 5000;
alter table vitrine.revision add column former_id text;
set local lock_timeout = 0;

create table vitrine.text_change (
    counter         bigint not null,
    counter_before  bigint not null,
    digest          bytea not null,
    is_taken_down   boolean not null,
    changed_at      bigint not null,
    primary key (counter, digest)
);
