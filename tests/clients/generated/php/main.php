<?php
// Uses the client that openapi-generator makes of the OpenAPI document; ci/generated-clients runs this.
declare(strict_types=1);

require 'GuzzleHttp/autoload.php';
spl_autoload_register(function (string $class): void {
    $path = __DIR__ . '/client/lib/' . str_replace(['OpenAPI\\Client\\', '\\'], ['', '/'], $class) . '.php';
    if (is_file($path)) {
        require $path;
    }
});

use OpenAPI\Client\Api\ProductsApi;
use OpenAPI\Client\Api\ServiceApi;
use OpenAPI\Client\ApiException;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model\ApiError;

function check(bool $holds, string $what): void
{
    if (!$holds) {
        throw new Exception($what);
    }
}

function settings(string $base): Configuration
{
    return (new Configuration())->setHost(getenv($base))->setApiKey('X-Api-Key', getenv('VITRINE_KEY'));
}

function api(string $base): ProductsApi
{
    return new ProductsApi(null, settings($base));
}

function everything(ProductsApi $products): array
{
    [$found, $after] = [[], null];
    do {
        $page = $products->listProducts(after: $after, limit: 7);
        array_push($found, ...$page->getCatalog());
        $after = $page->getPagination()->getCursors()->getAfter();
    } while ($after !== null);
    return $found;
}

function refused(callable $request): ApiError
{
    try {
        $request();
    } catch (ApiException $refusal) {
        check($refusal->getResponseObject() instanceof ApiError, 'an error is decoded');
        return $refusal->getResponseObject();
    }
    throw new Exception('a request that is refused');
}

// By default booleans are sent as 1 and 0. Queries are made by the default configuration alone.
Configuration::getDefaultConfiguration()->setBooleanFormatForQueryString(Configuration::BOOLEAN_FORMAT_STRING);
$products = api('VITRINE_BASE');

// A walk.
$walked = everything($products);
$codes = array_unique(array_map(fn ($product) => $product->getCode(), $walked));
$count = (int) getenv('VITRINE_PRODUCTS');
check(count($walked) === $count && count($codes) === $count, 'a walk finds all products once');
$types = array_unique(array_map(fn ($product) => $product->getPayoutType(), $walked));
sort($types);
check($types === ['gift_card', 'payment', 'prepaid_card', 'subscription'], implode(' ', $types));
foreach ($walked as $product) {
    check(in_array($product->getState(), ['LIVE', 'TEMPORARILY_DISABLED', 'TEMPORARILY_DEGRADED'], true), 'a state');
}

// Filters.
$found = $products->listProducts(is_orderable: true, countries_redeemable_in: ['SE', 'DK'])->getCatalog();
check(count($found) > 2, 'products of two countries');
foreach ($found as $product) {
    $fits = $product->getIsOrderable() && array_intersect(['SE', 'DK'], $product->getCountriesRedeemableIn());
    check((bool) $fits, $product->getCode());
}

// The three forms of texts.
$texts = fn (string $form) => $products->getProduct('HALLOWMERE-GB', $form)->getGiftCard()->getContentResources();
[$url, $md, $html] = [$texts('url'), $texts('md'), $texts('html')];
check(str_ends_with($url->getDescriptionMarkdownUrl(), '.md'), 'an address');
check(str_ends_with($url->getTermsConsumerMarkdownUrl(), '.md'), 'an address');
check(str_contains($md->getDescriptionMd(), '**Half day') && strlen($md->getTermsConsumerMd()) > 20, 'Markdown');
check(str_contains($html->getDescriptionHtml(), '<li><strong>Half day'), 'HTML');
check(strlen($html->getTermsConsumerHtml()) > 20, 'HTML');

// Errors.
check(refused(fn () => $products->getProduct('NONE'))->getType() === 'not_found', 'an absent product');
$cursors = refused(fn () => $products->listProducts(before: 'A', after: 'B'));
check($cursors->getDetails()[0]->getType() === 'mutually_exclusive', 'two cursors');
[, $status] = (new ServiceApi(null, settings('VITRINE_BASE')))->headPingWithHttpInfo();
check($status === 200, 'HEAD');

// Values and fields added later.
$later = api('VITRINE_LATER');
check(count(everything($later)) === $count, 'products of a later server');
$grown = $later->getProduct('HALLOWMERE-GB');
check([$grown->getState(), $grown->getPayoutType()] === ['RESTING', 'meal_voucher'], 'values added later');
check($grown->getGiftCard()->getBarcodeFormat() === 'aztec', 'a barcode format added later');
check(refused(fn () => $later->getProduct('NONE'))->getType() === 'added_later', 'an error type added later');

echo "PHP: $count products walked, filters, three forms, errors, values added later\n";
