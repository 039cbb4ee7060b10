-- SHA-256 of all other columns: tells a row that was changed by something other than Vitrine. Releases that don't know
-- the column replace whole rows, so what they write has no digest instead of a wrong one.
alter table api_key add column digest blob;
