-- Operators of the console, and their sessions.

create table operator (
    name        text primary key,
    role        text not null,
    password    text,          -- PHC string; null: signs in through a proxy
    stamp       text not null, -- each change replaces it
    created_at  integer not null,
    digest      blob not null  -- SHA-256 of all other columns
) strict;

-- Valid while the operator has the stamp.
create table operator_session (
    token_hash  blob primary key, -- SHA-256
    operator    text not null,
    stamp       text not null,
    created_at  integer not null,
    used_at     integer not null
) strict, without rowid;
create index session_operator on operator_session (operator, created_at);
