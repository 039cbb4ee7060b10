-- Operators of the console, and their sessions; see the migration of SQLite.

create table if not exists vitrine.operator (
    name        text primary key,
    role        text not null,
    password    text,
    stamp       text not null,
    created_at  bigint not null,
    digest      bytea not null
);

create table if not exists vitrine.operator_session (
    token_hash  bytea primary key,
    operator    text not null,
    stamp       text not null,
    created_at  bigint not null,
    used_at     bigint not null
);
create index if not exists session_operator on vitrine.operator_session (operator, created_at);

-- Of the record that led to the version, as it was loaded; null if there was none.
alter table vitrine.product_version add column if not exists record_digest bytea;
