-- The history of changes, from which servers answer what changed since a token. Releases that don't know these columns
-- leave gaps in it, which readers see: a step of the counter without a row breaks the chain of steps.

-- The id that a revision had before a restore gave it a new one.
alter table revision add column former_id text;

-- Each take-down of a text and each put-back, for ever. A restore is one step, with a row for each text whose status
-- differs from the backup's. Digests aren't references: a text may be pruned.
create table text_change (
    counter         integer not null, -- state.texts_counter after the step: random, so that it names one state of texts
    counter_before  integer not null,
    digest          blob not null,    -- empty: the step changed no text
    is_taken_down   integer not null,
    changed_at      integer not null,
    primary key (counter, digest)
) strict, without rowid;
