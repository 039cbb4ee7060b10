<?php
// Reads an address twice: the second answer is a 304 without a body, and costs no quota.
function read(string $address): array
{
    static $kept = []; // address => ['tag' => …, 'body' => …]
    $headers = ['X-Api-Key: ' . getenv('VITRINE_KEY')];
    if (isset($kept[$address])) {
        $headers[] = 'If-None-Match: ' . $kept[$address]['tag'];
    }
    $tag = null;
    $request = curl_init($address);
    curl_setopt_array($request, [
        CURLOPT_HTTPHEADER => $headers,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_HEADERFUNCTION => function ($_, string $line) use (&$tag) {
            if (stripos($line, 'etag:') === 0) {
                $tag = trim(substr($line, strlen('etag:')));
            }
            return strlen($line);
        },
    ]);
    $text = curl_exec($request);
    $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
    echo "$status\n";
    if ($status === 304) {
        return $kept[$address]['body'];
    }
    if ($status !== 200) {
        throw new RuntimeException($text === false ? curl_error($request) : $text);
    }
    $body = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
    $kept[$address] = ['tag' => $tag, 'body' => $body];
    return $body;
}

for ($time = 1; $time <= 2; $time++) {
    $page = read(getenv('VITRINE_URL') . '/product?limit=2');
    echo count($page['catalog']), "\n";
}
