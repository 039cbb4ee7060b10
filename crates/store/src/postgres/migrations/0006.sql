-- Webhook endpoints; see ../../sqlite/webhooks.sql. Releases that don't know these tables leave them as they are.

create table if not exists vitrine.webhook_state (
    one              boolean primary key default true check (one),
    changes          bigint not null,
    key_fingerprint  text,
    origin           text not null -- database in which endpoints were active: in a copy of it they are paused
);
insert into vitrine.webhook_state (changes, origin) values (1, '') on conflict do nothing;

create table if not exists vitrine.webhook_endpoint (
    number        bigint generated always as identity,
    id            text collate "C" primary key,
    document      text not null,
    fence         bigint not null default 0,
    lease         text,
    leased_until  timestamptz
) with (fillfactor = 50);

create table if not exists vitrine.webhook_attempt (
    endpoint  text collate "C" not null,
    number    bigint not null,
    document  text not null,
    primary key (endpoint, number)
);
