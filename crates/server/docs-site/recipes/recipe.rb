# Prints what can be ordered, in one country if COUNTRY names it, then one product with its texts.
require 'json'
require 'net/http'

BASE = ENV.fetch('VITRINE_URL')
KEY = ENV.fetch('VITRINE_KEY')
KNOWN = %w[gift_card subscription payment].freeze
TRIES = 5

class ApiError < StandardError
  attr_reader :type # decide by this one

  def initialize(body)
    @type = body['type']
    super("#{@type}: #{body['message']} (#{body['help']})")
  end
end

def get(path, query = {})
  uri = URI("#{BASE}#{path}?#{URI.encode_www_form(query)}")
  (1..TRIES).each do |attempt|
    response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https', read_timeout: 10) do |http|
      http.get(uri.request_uri, 'X-Api-Key' => KEY)
    end
    body = JSON.parse(response.body)
    return body if response.is_a?(Net::HTTPSuccess)
    raise ApiError, body if !%w[429 503].include?(response.code) || attempt == TRIES

    sleep((response['Retry-After'] || 1).to_i + rand)
  end
end

def each_product(filters)
  cursor = {}
  until (page = get('/product', filters.merge(cursor)))['catalog'].empty?
    page['catalog'].each { |product| yield product }
    cursor = { after: page['pagination']['cursors']['after'] }
  end
end

def amounts(product)
  details = product[product['payout_type']]
  plans = details['subscription_plans']
  return plans.map { |plan| "#{plan['name']} #{plan['price']}" } if plans

  range = details['denominations']
  return range['available_list'] if range['type'] == 'fixed'

  ["#{range['minimum_value']} to #{range['maximum_value']}"]
end

# A list becomes a repeated parameter, such as countries_redeemable_in: %w[DE AT].
filters = { is_orderable: true }
filters[:countries_redeemable_in] = ENV['COUNTRY'] if ENV['COUNTRY']
first = nil
each_product(filters) do |product|
  # Payout types may be added: skip those that this program doesn't know.
  next unless KNOWN.include?(product['payout_type'])

  first ||= product['code']
  puts [product['code'], product['name'], amounts(product).join(', '), product['currency']].join(' ')
end
if first
  product = get("/product/#{first}", content: 'html')
  texts = product[product['payout_type']]['content_resources']
  puts [product['code'], texts['locale'], texts['description_html']].join(' ')
end
