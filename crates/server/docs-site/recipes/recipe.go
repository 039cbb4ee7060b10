// Prints what can be ordered, in one country if COUNTRY names it, then one product with its texts.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const tries = 5

var client = http.Client{Timeout: 10 * time.Second}

// An APIError says in Type what programs decide by.
type APIError struct{ Type, Message, Help string }

func (e *APIError) Error() string { return fmt.Sprintf("%s: %s (%s)", e.Type, e.Message, e.Help) }

// A Product has its details in the field that payout_type names.
type Product struct {
	Code, Name, Currency string
	PayoutType           string `json:"payout_type"`
	Details              `json:"-"`
}

type Details struct {
	Denominations *struct {
		Type          string
		MinimumValue  string   `json:"minimum_value"`
		MaximumValue  string   `json:"maximum_value"`
		AvailableList []string `json:"available_list"`
	}
	SubscriptionPlans []struct{ Name, Price string } `json:"subscription_plans"`
	Texts             struct {
		Locale      string
		Description string `json:"description_html"`
	} `json:"content_resources"`
}

func (p *Product) UnmarshalJSON(text []byte) error {
	type common Product
	if err := json.Unmarshal(text, (*common)(p)); err != nil {
		return err
	}
	// Payout types may be added: this program doesn't know the details of those.
	if !p.isKnown() {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	return json.Unmarshal(fields[p.PayoutType], &p.Details)
}

func (p *Product) isKnown() bool {
	return p.PayoutType == "gift_card" || p.PayoutType == "subscription" || p.PayoutType == "payment"
}

func (p *Product) amounts() string {
	var plans []string
	for _, plan := range p.SubscriptionPlans {
		plans = append(plans, plan.Name+" "+plan.Price)
	}
	switch amounts := p.Denominations; {
	case amounts == nil:
		return strings.Join(plans, ", ")
	case amounts.Type == "fixed":
		return strings.Join(amounts.AvailableList, ", ")
	default:
		return amounts.MinimumValue + " to " + amounts.MaximumValue
	}
}

func get(path string, query url.Values, into any) error {
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequest("GET", os.Getenv("VITRINE_URL")+path+"?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		request.Header.Set("X-Api-Key", os.Getenv("VITRINE_KEY"))
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if response.StatusCode == 200 {
			defer response.Body.Close()
			return json.NewDecoder(response.Body).Decode(into)
		}
		refusal := &APIError{}
		err = json.NewDecoder(response.Body).Decode(refusal)
		response.Body.Close()
		if err != nil {
			return err
		}
		if response.StatusCode != 429 && response.StatusCode != 503 || attempt == tries {
			return refusal
		}
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		time.Sleep(time.Duration((float64(seconds) + rand.Float64()) * float64(time.Second)))
	}
}

func products(query url.Values, each func(Product)) error {
	for {
		var page struct {
			Catalog    []Product
			Pagination struct{ Cursors struct{ After string } }
		}
		if err := get("/product", query, &page); err != nil || len(page.Catalog) == 0 {
			return err
		}
		for _, product := range page.Catalog {
			each(product)
		}
		query.Set("after", page.Pagination.Cursors.After)
	}
}

func main() {
	query := url.Values{"is_orderable": {"true"}}
	if country := os.Getenv("COUNTRY"); country != "" {
		query.Add("countries_redeemable_in", country) // Add again for another one.
	}
	first := ""
	err := products(query, func(product Product) {
		if !product.isKnown() {
			return
		}
		if first == "" {
			first = product.Code
		}
		fmt.Println(product.Code, product.Name, product.amounts(), product.Currency)
	})
	var product Product
	if err == nil && first != "" {
		err = get("/product/"+first, url.Values{"content": {"html"}}, &product)
	}
	if err != nil {
		log.Fatal(err)
	}
	if first != "" {
		fmt.Println(product.Code, product.Texts.Locale, product.Texts.Description)
	}
}
