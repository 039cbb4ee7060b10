-- Overrides of operators. Products are stored as clients see them; a base is what loads brought of a product, stored only
-- while it differs. It is there from `from_revision` on, and until before `until_revision`.

create table catalog_override (
    number      integer primary key,
    definition  text not null, -- JSON
    from_at     integer not null, -- milliseconds since 1970
    until_at    integer,
    created_at  integer not null,
    created_by  text not null,
    note        text,
    status      text not null check (status in ('scheduled', 'active', 'ended')),
    ended_at    integer,
    ended_by    text,
    end_note    text
) strict;
create index open_override on catalog_override (number) where status <> 'ended';

create table base_version (
    id              integer primary key,
    code            text not null,
    from_revision   integer not null,
    until_revision  integer,
    digest          blob not null, -- SHA-256 of code and product
    product         text not null  -- JSON
) strict;
create unique index live_base on base_version (code) where until_revision is null;
create index base_history on base_version (code, from_revision);
create index base_retired on base_version (until_revision) where until_revision is not null;

-- The texts of bases, which a prune keeps.
create table base_text (
    base_version_id  integer not null references base_version (id),
    digest           blob not null references text (digest),
    primary key (base_version_id, digest)
) strict, without rowid;
create index base_text_digest on base_text (digest);
