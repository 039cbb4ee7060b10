# Receives events, and refuses those that aren't signed by the secret.
require "base64"
require "json"
require "openssl"
require "webrick"

KEY = Base64.strict_decode64(ENV.fetch("WEBHOOK_SECRET").delete_prefix("whsec_"))

# Standard Webhooks 1.0: one of the signatures must be that of id, time and body, and the time within five minutes.
def signed?(request)
  id, time = request["webhook-id"], request["webhook-timestamp"]
  return false unless time.to_s.match?(/\A\d+\z/) && (Time.now.to_i - time.to_i).abs <= 300
  own = "v1," + Base64.strict_encode64(OpenSSL::HMAC.digest("SHA256", KEY, "#{id}.#{time}.#{request.body}"))
  request["webhook-signature"].to_s.split.any? { |one| OpenSSL.secure_compare(one, own) }
end

last_id = nil
server = WEBrick::HTTPServer.new(
  BindAddress: "127.0.0.1", Port: ENV.fetch("PORT", 8788).to_i,
  Logger: WEBrick::Log.new(File::NULL), AccessLog: []
)
server.mount_proc("/") do |request, response|
  if !signed?(request)
    line, response.status = "refused", 400
  elsif request["webhook-id"] == last_id
    line, response.status = "came before", 204
  else
    # Here: wake what keeps your copy, or put the event into a queue that survives a crash.
    event = JSON.parse(request.body)
    line, response.status = "#{event["type"]} #{JSON.generate(event["data"]["codes"])}", 204
    last_id = request["webhook-id"]
  end
  $stdout.puts(line)
  $stdout.flush
end
trap("TERM") { server.shutdown }
server.start
