-- Webhook endpoints, in backups only: in use they are in a file of their own beside the store (../webhooks.sql).
create table webhook_state (
    changes          integer not null,
    key_fingerprint  text
) strict;

create table webhook_endpoint (
    id        text primary key,
    document  text not null  -- JSON
) strict;

create table webhook_attempt (
    endpoint  text not null,
    number    integer not null,
    document  text not null, -- JSON
    primary key (endpoint, number)
) strict, without rowid;
