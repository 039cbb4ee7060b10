-- The audit log, and how much each key was used; see ../../sqlite/migrations/0004.sql.

create table vitrine.audit_entry (
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
create index audit_subject on vitrine.audit_entry (subject, number);

create table vitrine.api_key_day (
    day       text collate "C" not null,
    prefix    text collate "C" not null,
    requests  bigint not null,
    charged   bigint not null,
    primary key (day, prefix)
);
