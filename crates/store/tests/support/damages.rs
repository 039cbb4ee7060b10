//! Damage by SQL, and the rules of a check that report it.

/// Returns damages, each with the rules that report it.
pub(crate) fn damages() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    DAMAGES.lines().map(|line| {
        let (rules, sql) = line.split_once(": ").unwrap();
        (sql, rules.split(' ').collect())
    })
}

const DAMAGES: &str = r#"document: delete from product_document where product_version_id = 1
document: update product_document set document = x'' where product_version_id = 1
document: update product_document set document = substr(document, 1, 20) where product_version_id = 1
version_digest: update product_document set document = (select document from product_document where product_version_id = 2) where product_version_id = 1
content_range document version_digest: update product_document set document = pack_document('{') where product_version_id = 1
document: update product_document set document = pack_document(x'ff') where product_version_id = 1
version_digest: update product_document set document = pack_document(replace(unpack_document(document), '1', '9')) where product_version_id = 2
version_digest: update product_version set discount_multiplier = '0.5' where id = 1
version_digest: update product_version set digest = zeroblob(16) where id = 1
content_range: update product_version set content_end = 9999 where id = 1
content_range: update product_version set content_end = null where id = 1
content_range: update product_version set content_start = -1 where id = 1
content_range: update product_version set content_start = content_end + 1 where id = 1
content_range: update product_version set content_start = content_start + 3 where id = 1
product_facts version_digest: update product_version set countries = '["Germany"]' where id = 1
product_facts version_digest: update product_version set categories = 'food' where id = 1
product_facts version_digest: update product_version set code = 'A B' where id = 2
version_life: update product_version set until_revision = from_revision where id = 1
version_life: update product_version set until_revision = 3 where id = 1
version_life: update product_version set until_revision = 7 where code = 'C'
version_life: delete from revision where number = 2
live_revision version_life: delete from revision where number = 3
live_revision: update state set revision_id = 'other'
live_revision: update state set revision_id = null
live_revision: update state set oldest_readable = 4
live_revision: update state set oldest_readable = -1
live_revision: delete from state
text_digest: update markdown_text set markdown = x'00' where digest = (select min(digest) from markdown_text)
text_digest: update markdown_text set markdown = (select markdown from markdown_text order by digest desc limit 1) where digest = (select min(digest) from markdown_text)
text_reference: delete from markdown_text where digest = (select min(digest) from markdown_text)
text_reference: insert into fetched_text values ('https://a.example/', zeroblob(32), null, null, 0)
text_name: update product_text set name = 'slogan' where product_version_id = 1 and name = 'description'
version_digest: delete from product_text where product_version_id = 1 and name = 'description'
text_reference: insert into product_text select 99, name, digest, null from product_text where product_version_id = 1
content_range: update product_version set content_start = 0, content_end = (select length(cast(unpack_document(document) as blob)) from product_document where product_version_id = 1) where id = 1
content_range: update product_version set content_end = content_end + 1 where id = 1
counter: update state set keys_counter = -1
counter: update state set texts_counter = -7
counter: update revision set retired = -1 where number = 2
text_reference: update product_text set digest = (select max(digest) from markdown_text) where product_version_id = 1 and digest = (select min(digest) from markdown_text)
api_key_digest: update api_key set revoked_at = null
api_key_digest: update api_key set expires_at = 9
api_key_digest: update api_key set label = 'other'
api_key_digest: update api_key set secret_hash = zeroblob(32)
api_key_digest: update api_key set digest = zeroblob(16)
api_key: update api_key set is_test = 2
api_key: update api_key set is_test = 1
api_key api_key_digest: update api_key set quota_seconds = null
api_key: update api_key set quota_requests = 0
api_key: update api_key set label = ''
api_key: update api_key set api_version = '2024-02-0u'
api_key: update api_key set prefix = 'vitrine_0123456789/'
api_key: insert into api_key values ('p', 'l', x'00', 0, null, null, null, null, 0, null, null, null, x'00')"#;
