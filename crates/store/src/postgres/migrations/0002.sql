-- Servers read keys meanwhile, and would queue behind this wait for the table.
set local lock_timeout = 5000;

-- SHA-256 of all other columns: tells a row that was changed by something other than Vitrine.
alter table vitrine.api_key add column digest bytea;

-- Releases that don't know the column write all others, the secret's hash among them, and leave the digest as it is.
-- The trigger drops it: such a row has no digest instead of a wrong one. A change by hand that names fewer columns
-- keeps the digest, which then doesn't match. ("or replace": the function outlives a restore of an older dump.)
create or replace function vitrine.drop_api_key_digest() returns trigger language plpgsql as $$
begin
    new.digest := null;
    return new;
end
$$;
create trigger drop_api_key_digest before update of secret_hash on vitrine.api_key for each row
    when (new.* is distinct from old.* and new.digest is not distinct from old.digest)
    execute function vitrine.drop_api_key_digest();

set local lock_timeout = 0;
