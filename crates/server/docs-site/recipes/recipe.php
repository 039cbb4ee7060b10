<?php
// Prints what can be ordered, in one country if COUNTRY names it, then one product with its texts.
const KNOWN = ['gift_card', 'subscription', 'payment'];
const TRIES = 5;

class ApiError extends Exception
{
    public string $type; // decide by this one

    public function __construct(array $body)
    {
        $this->type = $body['type'];
        parent::__construct("{$body['type']}: {$body['message']} ({$body['help']})");
    }
}

/** A list becomes a repeated parameter, without the [0] of http_build_query; booleans are given as texts. */
function query(array $parameters): string
{
    return preg_replace('/%5B\d+%5D=/', '=', http_build_query($parameters));
}

function get(string $path, array $parameters = []): array
{
    for ($attempt = 1; ; $attempt++) {
        $retryAfter = 1;
        $request = curl_init(getenv('VITRINE_URL') . $path . '?' . query($parameters));
        curl_setopt_array($request, [
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 10,
            CURLOPT_HTTPHEADER => ['X-Api-Key: ' . getenv('VITRINE_KEY')],
            CURLOPT_HEADERFUNCTION => function ($_, string $line) use (&$retryAfter) {
                if (stripos($line, 'retry-after:') === 0) {
                    $retryAfter = (int) substr($line, strlen('retry-after:'));
                }
                return strlen($line);
            },
        ]);
        $text = curl_exec($request);
        if ($text === false) {
            throw new RuntimeException(curl_error($request));
        }
        $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
        $body = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
        if ($status === 200) {
            return $body;
        }
        if (!in_array($status, [429, 503], true) || $attempt === TRIES) {
            throw new ApiError($body);
        }
        usleep($retryAfter * 1_000_000 + random_int(0, 1_000_000));
    }
}

function products(array $filters): Generator
{
    $cursor = [];
    while (($page = get('/product', $filters + $cursor))['catalog']) {
        yield from $page['catalog'];
        $cursor = ['after' => $page['pagination']['cursors']['after']];
    }
}

function amounts(array $product): array
{
    $details = $product[$product['payout_type']];
    if (isset($details['subscription_plans'])) {
        return array_map(fn ($plan) => "{$plan['name']} {$plan['price']}", $details['subscription_plans']);
    }
    $range = $details['denominations'];
    if (($range['type'] ?? '') === 'fixed') {
        return $range['available_list'];
    }
    return ["{$range['minimum_value']} to {$range['maximum_value']}"];
}

$filters = ['is_orderable' => 'true'];
if (getenv('COUNTRY')) {
    $filters['countries_redeemable_in'] = [getenv('COUNTRY')];
}
$first = null;
foreach (products($filters) as $product) {
    // Payout types may be added: skip those that this program doesn't know.
    if (!in_array($product['payout_type'], KNOWN, true)) {
        continue;
    }
    $first ??= $product['code'];
    echo "{$product['code']} {$product['name']} ", implode(', ', amounts($product)), " {$product['currency']}\n";
}
if ($first !== null) {
    $product = get("/product/$first", ['content' => 'html']);
    $texts = $product[$product['payout_type']]['content_resources'];
    echo "{$product['code']} {$texts['locale']} {$texts['description_html']}\n";
}
