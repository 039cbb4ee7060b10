-- The audit log, and how much each key was used; see ../../sqlite/migrations/0004.sql.
-- A dump of an older schema may have been restored beside these tables, which stay.

create table if not exists vitrine.audit_entry (
    number        bigint primary key,
    changed_at    bigint not null,
    changed_by    text not null,
    note          text,
    action        text not null,
    subject_kind  text not null,
    subject       text collate "C" not null,
    changes       text not null, -- never jsonb: its digest is that of the text
    digest        bytea not null
);
create index if not exists audit_subject on vitrine.audit_entry (subject, number);

create table if not exists vitrine.api_key_day (
    day       text collate "C" not null,
    prefix    text collate "C" not null,
    requests  bigint not null,
    charged   bigint not null,
    primary key (day, prefix)
);
