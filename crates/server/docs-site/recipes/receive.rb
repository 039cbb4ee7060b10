# Receives events, and refuses those that aren't signed by the secret.
require "json"
require "standardwebhooks"
require "webrick"

webhook = StandardWebhooks::Webhook.new(ENV.fetch("WEBHOOK_SECRET"))
last_id = nil
server = WEBrick::HTTPServer.new(
  BindAddress: "127.0.0.1", Port: ENV.fetch("PORT", 8788).to_i,
  Logger: WEBrick::Log.new(File::NULL), AccessLog: []
)
server.mount_proc("/") do |request, response|
  begin
    event = webhook.verify(request.body.to_s, request.header.transform_values(&:first))
    if request["webhook-id"] == last_id
      line, response.status = "came before", 204
    else
      # Here: wake the program that keeps your copy, or put the event into a queue that survives a crash.
      line, response.status = "#{event["type"]} #{JSON.generate(event["data"]["codes"])}", 204
      last_id = request["webhook-id"]
    end
  rescue StandardWebhooks::WebhookVerificationError => error
    line, response.status = "refused: #{error.message}", 400
  end
  $stdout.puts(line)
  $stdout.flush
end
trap("TERM") { server.shutdown }
server.start
