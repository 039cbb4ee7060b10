-- The audit log, and how much each key was used. Releases that don't know these tables write neither: their changes have
-- no entries, their requests aren't counted.

-- Each change of a key or of a text's status, and each restore, for ever; a restore keeps the log that it finds.
create table audit_entry (
    number        integer primary key, -- 1, 2, …
    changed_at    integer not null,
    changed_by    text not null,
    note          text,
    action        text not null,
    subject_kind  text not null, -- key, text or store
    subject       text not null, -- prefix of the key, digest of the text, file of the backup
    changes       text not null, -- JSON: [{"field", "before", "after"}]
    digest        blob not null  -- SHA-256 of all other columns and of the digest before
) strict;
create index audit_subject on audit_entry (subject, number);

-- Requests of each key by UTC day: servers add to them every minute. A restore keeps them.
create table api_key_day (
    day       text not null, -- 2026-01-31
    prefix    text not null,
    requests  integer not null,
    charged   integer not null,
    primary key (day, prefix)
) strict, without rowid;
