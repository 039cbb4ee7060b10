-- Webhook endpoints: a file of their own beside the store, since loads hold the store's only writer's lock. Backups of the store
-- have the same tables (schema.sql).
create table webhook_state (
    store_id         text not null,     -- the store that the file belongs to
    changes          integer not null,  -- goes up by random steps with each change by an operator
    key_fingerprint  text
) strict;

create table webhook_endpoint (
    number        integer primary key autoincrement,
    id            text not null unique,
    document      text not null,        -- JSON: everything but the lease
    fence         integer not null default 0,
    lease         text,                 -- token of the holder
    leased_until  integer,              -- milliseconds since the machine's start
    clock         text                  -- id of that start
) strict;

create table webhook_attempt (
    endpoint  text not null,
    number    integer not null,         -- from 1, for each endpoint
    document  text not null,            -- JSON
    primary key (endpoint, number)
) strict, without rowid;
