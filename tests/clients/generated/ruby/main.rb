# Uses the client that openapi-generator makes of the OpenAPI document; `ci/generated-clients` runs this.
require 'openapi_client'

def check(holds, what)
  raise what.to_s unless holds
end

def client_of(base)
  settings = OpenapiClient::Configuration.new
  settings.scheme, settings.host, settings.base_path = ENV.fetch(base).match(%r{(\w+)://([^/]+)(.*)}).captures
  # Servers of the document come before these.
  settings.server_index = nil
  # Lists are sent as `name[0]=…` otherwise.
  settings.params_encoding = :multi
  settings.api_key['X-Api-Key'] = ENV.fetch('VITRINE_KEY')
  OpenapiClient::ApiClient.new(settings)
end

def everything(products)
  found = []
  after = nil
  loop do
    page = products.list_products({ limit: 7, after: after }.compact)
    found.concat(page.catalog)
    after = page.pagination.cursors.after
    return found if after.nil?
  end
end

def refused(client)
  yield
  raise 'a request that is refused'
rescue OpenapiClient::ApiError => e
  OpenapiClient::ErrorBody.build_from_hash(JSON.parse(e.response_body, symbolize_names: true))
end

client = client_of('VITRINE_BASE')
products = OpenapiClient::ProductsApi.new(client)

# A walk.
walked = everything(products)
count = ENV.fetch('VITRINE_PRODUCTS').to_i
check(walked.length == count && walked.map(&:code).uniq.length == count, walked.length)
check(walked.map(&:payout_type).uniq.sort == %w[gift_card payment prepaid_card subscription], 'payout types')

# Filters.
found = products.list_products(countries_redeemable_in: %w[SE DK], is_orderable: true).catalog
check(found.length > 2, 'products of two countries')
found.each { |one| check(one.is_orderable && (one.countries_redeemable_in & %w[SE DK]).any?, one.code) }

# The three forms of texts.
url, md, html = %w[url md html].map do |form|
  products.get_product('HALLOWMERE-GB', content: form).gift_card.content_resources
end
check(url.description_markdown_url.end_with?('.md') && url.terms_consumer_markdown_url.end_with?('.md'), 'url')
check(md.description_md.include?('**Half day') && md.terms_consumer_md.length > 20, 'md')
check(html.description_html.include?('<li><strong>Half day') && html.terms_consumer_html.length > 20, 'html')

# Errors.
check(refused(client) { products.get_product('NONE') }.type == 'not_found', 'an absent product')
cursors = refused(client) { products.list_products(before: 'A', after: 'B') }
check(cursors.details[0].type == 'mutually_exclusive', 'two cursors')
_, status, = OpenapiClient::ServiceApi.new(client).head_ping_with_http_info
check(status == 200, 'HEAD')

# Values and fields added later.
client = client_of('VITRINE_LATER')
later = OpenapiClient::ProductsApi.new(client)
check(everything(later).length == count, 'products of a later server')
grown = later.get_product('HALLOWMERE-GB')
check([grown.state, grown.payout_type] == %w[RESTING meal_voucher], 'values added later')
check(grown.gift_card.barcode_format == 'aztec', 'a barcode format added later')
check(refused(client) { later.get_product('NONE') }.type == 'added_later', 'an error type added later')

puts "Ruby: #{count} products walked, filters, three forms, errors, values added later"
