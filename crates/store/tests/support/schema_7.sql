PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE revision (
    number      integer primary key,
    id          text not null unique,
    created_at  integer not null, -- milliseconds since 1970, UTC
    created     integer not null,
    changed     integer not null,
    retired     integer not null,
    unchanged   integer not null,
    published_by   text not null,
    note           text,
    source_digest  text -- SHA-256 of the inputs' bytes, hexadecimal
, former_id text) strict;
INSERT INTO revision VALUES(1,'39f0e9b24f08f7edb4136a093ea639fc',1795691531674,5,0,0,0,'unknown',NULL,'5c461e99d766dbfa489ce06e8a947ce9f7e9905ca49bba8f502403af6c041db3',NULL);
INSERT INTO revision VALUES(2,'99a99dfcdfa7eec9d71a0246cc456027',1795691531922,0,1,0,0,'unknown','override 1 begins (state=TEMPORARILY_DISABLED is_orderable=false)',NULL,NULL);
INSERT INTO revision VALUES(3,'c77cbe757754926a557170ea64923e13',1795691532036,0,0,1,0,'unknown','override 2 begins (visible=false)',NULL,NULL);
INSERT INTO revision VALUES(4,'12247f28ddbabe8f66724ca51fe0dde6',1795691532156,0,1,1,2,'unknown',NULL,'788750fbc64365814718050cb6ee9b41d2950dd6f07cd50c2529b4e0375152c9',NULL);
CREATE TABLE state (
    only_row         integer primary key check (only_row = 1),
    store_id         text not null default (lower(hex(randomblob(16)))),
    revision_number  integer references revision (number),
    revision_id      text,
    oldest_readable  integer references revision (number), -- older ones were pruned; null: none was
    texts_counter    integer not null default 0, -- goes up by random steps: copies go apart
    keys_counter     integer not null default 0  -- likewise
, assortments_counter integer not null default 0, assortments_accepted integer) strict;
INSERT INTO state VALUES(1,'7a09c8de2d0c6d44a22187152347dafd',4,'12247f28ddbabe8f66724ca51fe0dde6',NULL,0,0,0,NULL);
CREATE TABLE product_version (
    id                   integer primary key,
    code                 text not null,
    from_revision        integer not null,
    until_revision       integer,
    digest               blob not null, -- SHA-256 of all that follows, to tell changed from unchanged
    document             text not null, -- the canonical JSON; texts held here are named `texts/DIGEST.md`
    content_start        integer,       -- bytes, half-open: where in it the content resources lie
    content_end          integer,
    discount_multiplier  text not null, -- exactly as loaded
    is_orderable         integer not null,
    countries            text not null, -- JSON array
    categories           text not null  -- JSON array
) strict;
INSERT INTO product_version VALUES(1,'KOBAN-JP',1,NULL,X'7f96d6ab22c7ba584fdb110f250035b31ac528809d44590a5507d05987b7362a','{"name":"こばん送金","code":"KOBAN-JP","currency":"JPY","state":"LIVE","is_orderable":true,"payout_type":"payment","categories":["transfers"],"countries_redeemable_in":["JP"],"customer_service":{"phone_number":null,"website_url":"https://koban-sokin.example/faq"},"discount_multiplier":"0.00","payment":{"assets":{"icon_image_url":null,"primary_color":null},"denominations":{"minimum_value":"100.00","maximum_value":"300000.00"},"content_resources":{"description_markdown_url":null,"disclaimer_markdown_url":null,"refund_policy_markdown_url":null,"reissuance_policy_markdown_url":null,"terms_buyer_markdown_url":null,"terms_consumer_markdown_url":null,"redemption_instructions_markdown_url":null,"locale":"ja_JP"}}}',454,718,'0.00',1,'["JP"]','["transfers"]');
INSERT INTO product_version VALUES(2,'PANDANLANE-SG',1,2,X'fc130a14abbbbfdfbfefe1fc8db59b06733dc790db191c95c83230b3e6f86450','{"name":"Pandanlane Hawker Pass","code":"PANDANLANE-SG","currency":"SGD","state":"LIVE","is_orderable":true,"payout_type":"gift_card","categories":["food-and-drink","café & bistro"],"countries_redeemable_in":["SG"],"customer_service":{"phone_number":null,"website_url":"https://www.pandanlane.example/help"},"discount_multiplier":"0.05","availability":"realtime","gift_card":{"denominations":{"type":"fixed","minimum_value":"5.00","maximum_value":"50.00","available_list":["5.00","10.00","20.00","50.00"]},"assets":{"card_image_url":"https://images.pandanlane.example/PANDANLANE-SG/card.png","icon_image_url":"https://images.pandanlane.example/PANDANLANE-SG/icon.png","primary_color":"#3A7D44"},"balance_check_url":null,"expiry":{"date_policy":"12 months after the balance was last checked","in_months":12,"type":"from-last-balance-check"},"redeemable_at":"in-store","website_url":"https://www.pandanlane.example/","barcode_format":"QR","e_code_usage_type":"url-only","content_resources":{"description_markdown_url":"texts/5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5.md","disclaimer_markdown_url":null,"refund_policy_markdown_url":null,"reissuance_policy_markdown_url":null,"terms_buyer_markdown_url":null,"terms_consumer_markdown_url":null,"redemption_instructions_markdown_url":null,"locale":"en_SG"}}}',989,1324,'0.05',1,'["SG"]','["food-and-drink","café & bistro"]');
INSERT INTO product_version VALUES(3,'STARLOFT-EU',1,3,X'fb7f9bda148810340f20df47a94ef0378c2140be5d6b275b618a9c289ca034ea','{"name":"Starloft Games","code":"STARLOFT-EU","currency":"EUR","state":"LIVE","is_orderable":true,"payout_type":"gift_card","categories":["games"],"countries_redeemable_in":["AT","BE","DE","ES","FI","FR","IE","IT","LU","NL","PT"],"customer_service":{"phone_number":null,"website_url":"https://www.starloft.example/help"},"discount_multiplier":"0.07","availability":"realtime","gift_card":{"denominations":{"type":"fixed","minimum_value":"5.00","maximum_value":"100.00","available_list":["5.00","10.00","20.00","50.00","100.00"]},"assets":{"card_image_url":"https://images.starloft.example/STARLOFT-EU/card.png","icon_image_url":"https://images.starloft.example/STARLOFT-EU/icon.png","primary_color":"#3B1E6D"},"balance_check_url":null,"expiry":{"date_policy":"Does not expire","in_months":0,"type":"indefinite"},"redeemable_at":"online","website_url":"https://www.starloft.example/","barcode_format":null,"e_code_usage_type":"url-recommended","content_resources":{"description_markdown_url":"texts/9bddb161f35580d46abd4d4391535309621452d89daf8d9ed939ec642d1ee9df.md","disclaimer_markdown_url":null,"refund_policy_markdown_url":null,"reissuance_policy_markdown_url":null,"terms_buyer_markdown_url":null,"terms_consumer_markdown_url":null,"redemption_instructions_markdown_url":null,"locale":"en_IE"}}}',963,1298,'0.07',1,'["AT","BE","DE","ES","FI","FR","IE","IT","LU","NL","PT"]','["games"]');
INSERT INTO product_version VALUES(4,'TONVIK-DK',1,4,X'f864067a681ee0312d5ffe7f2ce114c3bdeb9b9d6ca4b1980f0ed3cba4b7b091','{"name":"Tonvik Musik Danmark","code":"TONVIK-DK","currency":"DKK","state":"LIVE","is_orderable":true,"payout_type":"subscription","categories":["film-and-music"],"countries_redeemable_in":["DK"],"customer_service":{"phone_number":null,"website_url":"https://www.tonvik.example/help"},"discount_multiplier":"0.20","availability":"stocked","subscription":{"subscription_plans":[{"length_unit":"DAYS","length":30,"name":"30 dage","price":"79.00","subscription_plan_code":"TONVIK-DK-30D"}],"assets":{"card_image_url":"https://images.tonvik.example/TONVIK-DK/card.png","icon_image_url":"https://images.tonvik.example/TONVIK-DK/icon.png","primary_color":"#FF5D8F"},"balance_check_url":null,"expiry":{"date_policy":"Aktiveres inden 12 måneder","in_months":12,"type":"from-issue-date"},"redeemable_at":"online","website_url":"https://www.tonvik.example/","barcode_format":null,"e_code_usage_type":"url-only","content_resources":{"description_markdown_url":"https://texts.tonvik.example/TONVIK-DK/description.md","disclaimer_markdown_url":null,"refund_policy_markdown_url":null,"reissuance_policy_markdown_url":null,"terms_buyer_markdown_url":null,"terms_consumer_markdown_url":"https://texts.tonvik.example/TONVIK-DK/terms.md","redemption_instructions_markdown_url":null,"locale":"da_DK"}}}',922,1282,'0.20',1,'["DK"]','["film-and-music"]');
INSERT INTO product_version VALUES(5,'plain~1',1,NULL,X'821bef21b1cf74bceeb549ab00181a57fe35b92d0c4c6f37ac4fc21dbefb056b','{"name":"The Plain Card","code":"plain~1","currency":"USD","state":"LIVE","is_orderable":true,"payout_type":"gift_card","categories":[],"countries_redeemable_in":["US"],"customer_service":{"phone_number":null,"website_url":null},"discount_multiplier":"0.00","gift_card":{"denominations":{"type":"open","minimum_value":"1.00","maximum_value":"1.00","available_list":null},"assets":{"card_image_url":null,"icon_image_url":null,"primary_color":null},"balance_check_url":null,"expiry":{"date_policy":null,"in_months":0,"type":"do-not-show"},"redeemable_at":"all","website_url":null,"barcode_format":null,"e_code_usage_type":"undefined","content_resources":{"description_markdown_url":null,"disclaimer_markdown_url":null,"refund_policy_markdown_url":null,"reissuance_policy_markdown_url":null,"terms_buyer_markdown_url":null,"terms_consumer_markdown_url":null,"redemption_instructions_markdown_url":null,"locale":"en_US"}}}',652,916,'0.00',1,'["US"]','[]');
INSERT INTO product_version VALUES(6,'PANDANLANE-SG',2,4,X'cdef64fcfebd41eb322f04baf91de8d39fb5e30e6d2bffbc97484cd454d55400','{"name":"Pandanlane Hawker Pass","code":"PANDANLANE-SG","currency":"SGD","state":"TEMPORARILY_DISABLED","is_orderable":false,"payout_type":"gift_card","categories":["food-and-drink","café & bistro"],"countries_redeemable_in":["SG"],"customer_service":{"phone_number":null,"website_url":"https://www.pandanlane.example/help"},"discount_multiplier":"0.05","availability":"realtime","gift_card":{"denominations":{"type":"fixed","minimum_value":"5.00","maximum_value":"50.00","available_list":["5.00","10.00","20.00","50.00"]},"assets":{"card_image_url":"https://images.pandanlane.example/PANDANLANE-SG/card.png","icon_image_url":"https://images.pandanlane.example/PANDANLANE-SG/icon.png","primary_color":"#3A7D44"},"balance_check_url":null,"expiry":{"date_policy":"12 months after the balance was last checked","in_months":12,"type":"from-last-balance-check"},"redeemable_at":"in-store","website_url":"https://www.pandanlane.example/","barcode_format":"QR","e_code_usage_type":"url-only","content_resources":{"description_markdown_url":"texts/5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5.md","disclaimer_markdown_url":null,"refund_policy_markdown_url":null,"reissuance_policy_markdown_url":null,"terms_buyer_markdown_url":null,"terms_consumer_markdown_url":null,"redemption_instructions_markdown_url":null,"locale":"en_SG"}}}',1006,1341,'0.05',0,'["SG"]','["food-and-drink","café & bistro"]');
INSERT INTO product_version VALUES(7,'PANDANLANE-SG',4,NULL,X'aa3a87cab0e3268a2b7b82c574036d67de82da539065467cb24650129dbda8fc','{"name":"Another name","code":"PANDANLANE-SG","currency":"SGD","state":"TEMPORARILY_DISABLED","is_orderable":false,"payout_type":"gift_card","categories":["food-and-drink","café & bistro"],"countries_redeemable_in":["SG"],"customer_service":{"phone_number":null,"website_url":"https://www.pandanlane.example/help"},"discount_multiplier":"0.05","availability":"realtime","gift_card":{"denominations":{"type":"fixed","minimum_value":"5.00","maximum_value":"50.00","available_list":["5.00","10.00","20.00","50.00"]},"assets":{"card_image_url":"https://images.pandanlane.example/PANDANLANE-SG/card.png","icon_image_url":"https://images.pandanlane.example/PANDANLANE-SG/icon.png","primary_color":"#3A7D44"},"balance_check_url":null,"expiry":{"date_policy":"12 months after the balance was last checked","in_months":12,"type":"from-last-balance-check"},"redeemable_at":"in-store","website_url":"https://www.pandanlane.example/","barcode_format":"QR","e_code_usage_type":"url-only","content_resources":{"description_markdown_url":"texts/5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5.md","disclaimer_markdown_url":null,"refund_policy_markdown_url":null,"reissuance_policy_markdown_url":null,"terms_buyer_markdown_url":null,"terms_consumer_markdown_url":null,"redemption_instructions_markdown_url":null,"locale":"en_SG"}}}',996,1331,'0.05',0,'["SG"]','["food-and-drink","café & bistro"]');
CREATE TABLE text (
    digest         blob primary key,
    markdown       blob not null,
    taken_down_at  integer
) strict, without rowid;
INSERT INTO text VALUES(X'5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5',X'28b52ffd200631000023204f6e650a',NULL);
INSERT INTO text VALUES(X'9bddb161f35580d46abd4d4391535309621452d89daf8d9ed939ec642d1ee9df',X'28b52ffd2006310000232054776f0a',NULL);
CREATE TABLE product_text (
    product_version_id  integer not null references product_version (id),
    name                text not null,
    digest              blob not null references text (digest),
    source_url          text,
    primary key (product_version_id, name)
) strict, without rowid;
INSERT INTO product_text VALUES(2,'description',X'5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5',NULL);
INSERT INTO product_text VALUES(3,'description',X'9bddb161f35580d46abd4d4391535309621452d89daf8d9ed939ec642d1ee9df',NULL);
INSERT INTO product_text VALUES(6,'description',X'5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5',NULL);
INSERT INTO product_text VALUES(7,'description',X'5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5',NULL);
CREATE TABLE fetched_text (
    url            text primary key,
    digest         blob not null references text (digest),
    etag           text,
    last_modified  text,
    fetched_at     integer not null
) strict, without rowid;
CREATE TABLE api_key (
    prefix          text primary key,
    label           text not null,
    secret_hash     blob not null,
    is_test         integer not null,
    api_version     text,
    quota_requests  integer,
    quota_seconds   integer,
    created_at      integer not null,
    expires_at      integer,
    revoked_at      integer,
    rotated_at      integer
, digest blob) strict;
CREATE TABLE api_key_use (
    prefix        text primary key,
    last_used_at  integer not null
) strict, without rowid;
CREATE TABLE text_change (
    counter         integer not null, -- state.texts_counter after the step: random, so that it names one state of texts
    counter_before  integer not null,
    digest          blob not null,    -- empty: the step changed no text
    is_taken_down   integer not null,
    changed_at      integer not null,
    primary key (counter, digest)
) strict, without rowid;
CREATE TABLE audit_entry (
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
CREATE TABLE api_key_day (
    day       text not null, -- 2026-01-31
    prefix    text not null,
    requests  integer not null,
    charged   integer not null,
    primary key (day, prefix)
) strict, without rowid;
CREATE TABLE assortment_version (
    name         text not null,
    number       integer not null, -- from 1, for each name
    id           text not null unique,
    created_at   integer not null,
    replaced_at  integer,          -- null: current
    changed_by   text,
    note         text,
    codes        integer not null, -- number of product codes in the rules
    digest       blob not null,    -- SHA-256 of all other columns but replaced_at
    rules        text,             -- JSON; null: a removal
    primary key (name, number)
) strict;
CREATE TABLE assigned_key (
    prefix          text primary key,
    label           text not null,
    secret_hash     blob not null,
    is_test         integer not null,
    api_version     text,
    quota_requests  integer,
    quota_seconds   integer,
    created_at      integer not null,
    expires_at      integer,
    revoked_at      integer,
    rotated_at      integer,
    digest          blob,
    assortment      text not null
) strict;
CREATE TABLE webhook_state (
    changes          integer not null,
    key_fingerprint  text
) strict;
CREATE TABLE webhook_endpoint (
    id        text primary key,
    document  text not null  -- JSON
) strict;
CREATE TABLE webhook_attempt (
    endpoint  text not null,
    number    integer not null,
    document  text not null, -- JSON
    primary key (endpoint, number)
) strict, without rowid;
CREATE TABLE catalog_override (
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
INSERT INTO catalog_override VALUES(1,'{"kind":"disable","selection":{"codes":["PANDANLANE-SG"]},"values":["state=TEMPORARILY_DISABLED","is_orderable=false"],"allowances":["not-orderable=100%"]}',1795691531922,NULL,1795691531922,'unknown',NULL,'active',NULL,NULL,NULL);
INSERT INTO catalog_override VALUES(2,'{"kind":"hide","selection":{"codes":["STARLOFT-EU"]},"values":["visible=false"],"allowances":["retire=100%"]}',1795691532036,NULL,1795691532036,'unknown',NULL,'active',NULL,NULL,NULL);
CREATE TABLE base_version (
    id              integer primary key,
    code            text not null,
    from_revision   integer not null,
    until_revision  integer,
    digest          blob not null, -- SHA-256 of code and product
    product         text not null  -- JSON
) strict;
INSERT INTO base_version VALUES(1,'PANDANLANE-SG',2,4,X'100998bdf474a04ef00061e60617e12911c780b18f42701e8bb0420299a56721','{"document":"{\"name\":\"Pandanlane Hawker Pass\",\"code\":\"PANDANLANE-SG\",\"currency\":\"SGD\",\"state\":\"LIVE\",\"is_orderable\":true,\"payout_type\":\"gift_card\",\"categories\":[\"food-and-drink\",\"café & bistro\"],\"countries_redeemable_in\":[\"SG\"],\"customer_service\":{\"phone_number\":null,\"website_url\":\"https://www.pandanlane.example/help\"},\"discount_multiplier\":\"0.05\",\"availability\":\"realtime\",\"gift_card\":{\"denominations\":{\"type\":\"fixed\",\"minimum_value\":\"5.00\",\"maximum_value\":\"50.00\",\"available_list\":[\"5.00\",\"10.00\",\"20.00\",\"50.00\"]},\"assets\":{\"card_image_url\":\"https://images.pandanlane.example/PANDANLANE-SG/card.png\",\"icon_image_url\":\"https://images.pandanlane.example/PANDANLANE-SG/icon.png\",\"primary_color\":\"#3A7D44\"},\"balance_check_url\":null,\"expiry\":{\"date_policy\":\"12 months after the balance was last checked\",\"in_months\":12,\"type\":\"from-last-balance-check\"},\"redeemable_at\":\"in-store\",\"website_url\":\"https://www.pandanlane.example/\",\"barcode_format\":\"QR\",\"e_code_usage_type\":\"url-only\",\"content_resources\":{\"description_markdown_url\":\"texts/5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5.md\",\"disclaimer_markdown_url\":null,\"refund_policy_markdown_url\":null,\"reissuance_policy_markdown_url\":null,\"terms_buyer_markdown_url\":null,\"terms_consumer_markdown_url\":null,\"redemption_instructions_markdown_url\":null,\"locale\":\"en_SG\"}}}","content":{"start":989,"end":1324},"discount_multiplier":"0.05","is_orderable":true,"countries":["SG"],"categories":["food-and-drink","café & bistro"],"own_texts":[{"name":"description","digest":"5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5","source":null}]}');
INSERT INTO base_version VALUES(2,'STARLOFT-EU',3,NULL,X'd090bde909daed70d5fb693897c39c2df95a3ad4a8bbab7bcb4110dbe71dd9bb','{"document":"{\"name\":\"Starloft Games\",\"code\":\"STARLOFT-EU\",\"currency\":\"EUR\",\"state\":\"LIVE\",\"is_orderable\":true,\"payout_type\":\"gift_card\",\"categories\":[\"games\"],\"countries_redeemable_in\":[\"AT\",\"BE\",\"DE\",\"ES\",\"FI\",\"FR\",\"IE\",\"IT\",\"LU\",\"NL\",\"PT\"],\"customer_service\":{\"phone_number\":null,\"website_url\":\"https://www.starloft.example/help\"},\"discount_multiplier\":\"0.07\",\"availability\":\"realtime\",\"gift_card\":{\"denominations\":{\"type\":\"fixed\",\"minimum_value\":\"5.00\",\"maximum_value\":\"100.00\",\"available_list\":[\"5.00\",\"10.00\",\"20.00\",\"50.00\",\"100.00\"]},\"assets\":{\"card_image_url\":\"https://images.starloft.example/STARLOFT-EU/card.png\",\"icon_image_url\":\"https://images.starloft.example/STARLOFT-EU/icon.png\",\"primary_color\":\"#3B1E6D\"},\"balance_check_url\":null,\"expiry\":{\"date_policy\":\"Does not expire\",\"in_months\":0,\"type\":\"indefinite\"},\"redeemable_at\":\"online\",\"website_url\":\"https://www.starloft.example/\",\"barcode_format\":null,\"e_code_usage_type\":\"url-recommended\",\"content_resources\":{\"description_markdown_url\":\"texts/9bddb161f35580d46abd4d4391535309621452d89daf8d9ed939ec642d1ee9df.md\",\"disclaimer_markdown_url\":null,\"refund_policy_markdown_url\":null,\"reissuance_policy_markdown_url\":null,\"terms_buyer_markdown_url\":null,\"terms_consumer_markdown_url\":null,\"redemption_instructions_markdown_url\":null,\"locale\":\"en_IE\"}}}","content":{"start":963,"end":1298},"discount_multiplier":"0.07","is_orderable":true,"countries":["AT","BE","DE","ES","FI","FR","IE","IT","LU","NL","PT"],"categories":["games"],"own_texts":[{"name":"description","digest":"9bddb161f35580d46abd4d4391535309621452d89daf8d9ed939ec642d1ee9df","source":null}]}');
INSERT INTO base_version VALUES(3,'PANDANLANE-SG',4,NULL,X'c992da81e01bce0e502bd67fd52a5b7a2164c83ee1c27007fda9aa6ba8643060','{"document":"{\"name\":\"Another name\",\"code\":\"PANDANLANE-SG\",\"currency\":\"SGD\",\"state\":\"LIVE\",\"is_orderable\":true,\"payout_type\":\"gift_card\",\"categories\":[\"food-and-drink\",\"café & bistro\"],\"countries_redeemable_in\":[\"SG\"],\"customer_service\":{\"phone_number\":null,\"website_url\":\"https://www.pandanlane.example/help\"},\"discount_multiplier\":\"0.05\",\"availability\":\"realtime\",\"gift_card\":{\"denominations\":{\"type\":\"fixed\",\"minimum_value\":\"5.00\",\"maximum_value\":\"50.00\",\"available_list\":[\"5.00\",\"10.00\",\"20.00\",\"50.00\"]},\"assets\":{\"card_image_url\":\"https://images.pandanlane.example/PANDANLANE-SG/card.png\",\"icon_image_url\":\"https://images.pandanlane.example/PANDANLANE-SG/icon.png\",\"primary_color\":\"#3A7D44\"},\"balance_check_url\":null,\"expiry\":{\"date_policy\":\"12 months after the balance was last checked\",\"in_months\":12,\"type\":\"from-last-balance-check\"},\"redeemable_at\":\"in-store\",\"website_url\":\"https://www.pandanlane.example/\",\"barcode_format\":\"QR\",\"e_code_usage_type\":\"url-only\",\"content_resources\":{\"description_markdown_url\":\"texts/5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5.md\",\"disclaimer_markdown_url\":null,\"refund_policy_markdown_url\":null,\"reissuance_policy_markdown_url\":null,\"terms_buyer_markdown_url\":null,\"terms_consumer_markdown_url\":null,\"redemption_instructions_markdown_url\":null,\"locale\":\"en_SG\"}}}","content":{"start":979,"end":1314},"discount_multiplier":"0.05","is_orderable":true,"countries":["SG"],"categories":["food-and-drink","café & bistro"],"own_texts":[{"name":"description","digest":"5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5","source":null}]}');
CREATE TABLE base_text (
    base_version_id  integer not null references base_version (id),
    digest           blob not null references text (digest),
    primary key (base_version_id, digest)
) strict, without rowid;
INSERT INTO base_text VALUES(1,X'5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5');
INSERT INTO base_text VALUES(3,X'5add2e4a6306bb1bb52c92869f20756aa1c9d514dbb2c9c4d2a94bc8378b0eb5');
INSERT INTO base_text VALUES(2,X'9bddb161f35580d46abd4d4391535309621452d89daf8d9ed939ec642d1ee9df');
CREATE UNIQUE INDEX live_product on product_version (code) where until_revision is null;
CREATE INDEX product_history on product_version (code, from_revision);
CREATE INDEX product_appeared on product_version (from_revision);
CREATE INDEX product_retired on product_version (until_revision) where until_revision is not null;
CREATE INDEX text_taken_down on text (taken_down_at) where taken_down_at is not null;
CREATE INDEX product_text_digest on product_text (digest);
CREATE INDEX fetched_text_digest on fetched_text (digest);
CREATE INDEX audit_subject on audit_entry (subject, number);
CREATE UNIQUE INDEX current_assortment on assortment_version (name) where replaced_at is null;
CREATE INDEX replaced_assortment on assortment_version (replaced_at) where replaced_at is not null;
CREATE INDEX open_override on catalog_override (number) where status <> 'ended';
CREATE UNIQUE INDEX live_base on base_version (code) where until_revision is null;
CREATE INDEX base_history on base_version (code, from_revision);
CREATE INDEX base_retired on base_version (until_revision) where until_revision is not null;
CREATE INDEX base_text_digest on base_text (digest);
COMMIT;
