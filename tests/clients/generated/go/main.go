// Uses the client that openapi-generator makes of the OpenAPI document; ci/generated-clients runs this.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	openapi "vitrine.example/clients/client"
)

func check(holds bool, what ...any) {
	if !holds {
		panic(fmt.Sprint(what...))
	}
}

func clientOf(base string) (*openapi.APIClient, context.Context) {
	settings := openapi.NewConfiguration()
	settings.Servers = openapi.ServerConfigurations{{URL: base}}
	keys := map[string]openapi.APIKey{"ApiKey": {Key: os.Getenv("VITRINE_KEY")}}
	return openapi.NewAPIClient(settings), context.WithValue(context.Background(), openapi.ContextAPIKeys, keys)
}

func everything(client *openapi.APIClient, ctx context.Context) []openapi.Product {
	var found []openapi.Product
	request := client.ProductsAPI.ListProducts(ctx).Limit(7)
	for {
		page, _, err := request.Execute()
		check(err == nil, err)
		found = append(found, page.Catalog...)
		after := page.Pagination.Cursors.After.Get()
		if after == nil {
			return found
		}
		request = request.After(*after)
	}
}

func refused(err error) openapi.ApiError {
	var refusal *openapi.GenericOpenAPIError
	check(errors.As(err, &refusal), err)
	model, isError := refusal.Model().(openapi.ApiError)
	check(isError, "an error's model is ", refusal.Model())
	return model
}

func main() {
	client, ctx := clientOf(os.Getenv("VITRINE_BASE"))
	products := client.ProductsAPI

	// A walk.
	walked := everything(client, ctx)
	count, _ := strconv.Atoi(os.Getenv("VITRINE_PRODUCTS"))
	codes := map[string]bool{}
	for _, product := range walked {
		codes[product.Code] = true
		if product.PayoutType == "prepaid_card" {
			check(product.AdditionalProperties["prepaid_card"] != nil, "the details of a payout type added later")
		}
	}
	check(len(walked) == count && len(codes) == count, len(walked))

	// Filters.
	page, _, err := products.ListProducts(ctx).CountriesRedeemableIn([]string{"SE", "DK"}).IsOrderable(true).Execute()
	check(err == nil && len(page.Catalog) > 2, err)
	for _, product := range page.Catalog {
		countries := strings.Join(product.CountriesRedeemableIn, " ")
		check(product.IsOrderable && (strings.Contains(countries, "SE") || strings.Contains(countries, "DK")), product.Code)
	}

	// The three forms of texts.
	texts := func(form string) *openapi.ContentResources {
		product, _, err := products.GetProduct(ctx, "HALLOWMERE-GB").Content(form).Execute()
		check(err == nil, err)
		return &product.GiftCard.ContentResources
	}
	url, md, html := texts("url"), texts("md"), texts("html")
	check(strings.HasSuffix(url.GetDescriptionMarkdownUrl(), ".md") && url.GetTermsConsumerMarkdownUrl() != "", "url")
	check(strings.Contains(md.GetDescriptionMd(), "**Half day") && md.GetTermsConsumerMd() != "", "md")
	check(strings.Contains(html.GetDescriptionHtml(), "<li><strong>Half day") && html.GetTermsConsumerHtml() != "", "html")

	// Errors.
	_, _, err = products.GetProduct(ctx, "NONE").Execute()
	check(refused(err).Type == "not_found", err)
	_, _, err = products.ListProducts(ctx).Before("A").After("B").Execute()
	check(refused(err).Details[0].Type == "mutually_exclusive", err)
	head, err := client.ServiceAPI.HeadPing(ctx).Execute()
	check(err == nil && head.StatusCode == 200, err)

	// Values and fields added later.
	client, ctx = clientOf(os.Getenv("VITRINE_LATER"))
	check(len(everything(client, ctx)) == count, "products of a later server")
	product, _, err := client.ProductsAPI.GetProduct(ctx, "HALLOWMERE-GB").Execute()
	check(err == nil, err)
	check(product.State == "RESTING" && product.PayoutType == "meal_voucher", product.State, product.PayoutType)
	check(product.AdditionalProperties["meal_voucher"] != nil, "the details of a payout type added later")
	check(product.GiftCard.AdditionalProperties["courier"] != nil, "a field added later")
	_, _, err = client.ProductsAPI.GetProduct(ctx, "NONE").Execute()
	check(refused(err).Type == "added_later", err)

	fmt.Printf("Go: %d products walked, filters, three forms, errors, values added later\n", count)
}
