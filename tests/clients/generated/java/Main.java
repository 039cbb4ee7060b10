// Uses the models that openapi-generator makes for Java's retrofit2 and gson; `ci/generated-clients` runs this. Retrofit itself
// isn't packaged by Debian, so requests go out through Java's own HTTP client.

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.openapitools.client.model.*;

public class Main {
  private static final HttpClient CLIENT = HttpClient.newHttpClient();
  private static final Gson GSON = new Gson();

  private record Answer(int status, String body) {
    <T> T as(Class<T> model) {
      return GSON.fromJson(body, model);
    }
  }

  private static Answer get(String base, String target) throws Exception {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(base + target));
    request.header("X-Api-Key", System.getenv("VITRINE_KEY"));
    HttpResponse<String> response = CLIENT.send(request.build(), HttpResponse.BodyHandlers.ofString());
    return new Answer(response.statusCode(), response.body());
  }

  private static void check(boolean holds, Object what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  private static List<Product> everything(String base) throws Exception {
    List<Product> found = new ArrayList<>();
    String cursor = "";
    while (true) {
      ProductList page = get(base, "/product?limit=7" + cursor).as(ProductList.class);
      found.addAll(page.getCatalog());
      String after = page.getPagination().getCursors().getAfter();
      if (after == null) {
        return found;
      }
      cursor = "&after=" + after;
    }
  }

  /** Holds that all of a JSON value is in what the models make of it. */
  private static void contains(JsonElement made, JsonElement plain, String path) {
    if (plain.isJsonObject()) {
      for (Map.Entry<String, JsonElement> field : plain.getAsJsonObject().entrySet()) {
        // Models know the payout types of their day only, and leave out nulls.
        if (!field.getKey().equals("prepaid_card") && !field.getValue().isJsonNull()) {
          check(made != null && made.isJsonObject(), path + " is lost");
          contains(made.getAsJsonObject().get(field.getKey()), field.getValue(), path + "/" + field.getKey());
        }
      }
    } else if (plain.isJsonArray()) {
      JsonArray items = plain.getAsJsonArray();
      for (int at = 0; at < items.size(); at++) {
        contains(made.getAsJsonArray().get(at), items.get(at), path + "/" + at);
      }
    } else {
      check(plain.equals(made), path + ": " + plain + " became " + made);
    }
  }

  private static ContentResources texts(String base, String form) throws Exception {
    return get(base, "/product/HALLOWMERE-GB?content=" + form).as(Product.class).getGiftCard().getContentResources();
  }

  public static void main(String[] arguments) throws Exception {
    String base = System.getenv("VITRINE_BASE");
    int count = Integer.parseInt(System.getenv("VITRINE_PRODUCTS"));

    // A walk, in which nothing is lost but what the models don't know.
    List<Product> walked = everything(base);
    Set<String> codes = new HashSet<>();
    walked.forEach(product -> codes.add(product.getCode()));
    check(walked.size() == count && codes.size() == count, walked.size());
    Answer whole = get(base, "/product");
    contains(GSON.toJsonTree(whole.as(ProductList.class)), JsonParser.parseString(whole.body()), "");

    // Filters.
    String nordic = "/product?countries_redeemable_in=SE&countries_redeemable_in=DK&is_orderable=true";
    ProductList found = get(base, nordic).as(ProductList.class);
    check(found.getCatalog().size() > 2, "products of two countries");
    for (Product product : found.getCatalog()) {
      List<String> countries = product.getCountriesRedeemableIn();
      check(product.getIsOrderable() && (countries.contains("SE") || countries.contains("DK")), product.getCode());
    }

    // The changes feed, categories and countries.
    Answer changes = get(base, "/product/changes");
    contains(GSON.toJsonTree(changes.as(Changes.class)), JsonParser.parseString(changes.body()), "");
    check(get(base, "/product/categories").as(CategoryList.class).getCategories().size() > 2, "categories");
    check(get(base, "/product/countries").as(CountryList.class).getCountries().contains("GB"), "countries");
    check(get(base, "/ping").as(Pong.class).getMessage().equals("pong"), "a ping");

    // The three forms of texts.
    check(texts(base, "url").getDescriptionMarkdownUrl().endsWith(".md"), "url");
    check(texts(base, "md").getDescriptionMd().contains("**Half day"), "md");
    check(texts(base, "html").getDescriptionHtml().contains("<li><strong>Half day"), "html");

    // Errors.
    Answer absent = get(base, "/product/NONE");
    check(absent.status() == 404 && absent.as(ApiError.class).getType().equals("not_found"), absent);
    ApiError cursors = get(base, "/product?before=A&after=B").as(ApiError.class);
    check(cursors.getDetails().get(0).getType().equals("mutually_exclusive"), cursors);
    check(cursors.getDetails().get(0).getLocation().get(1).equals("after"), cursors);

    // Values and fields added later.
    String later = System.getenv("VITRINE_LATER");
    check(everything(later).size() == count, "products of a later server");
    Product grown = get(later, "/product/HALLOWMERE-GB").as(Product.class);
    check(grown.getState().equals("RESTING") && grown.getPayoutType().equals("meal_voucher"), grown);
    check(grown.getGiftCard().getBarcodeFormat().equals("aztec"), grown);
    check(get(later, "/product/NONE").as(ApiError.class).getType().equals("added_later"), "an error type added later");

    System.out.println("Java: " + count + " products walked, filters, three forms, errors, values added later");
  }
}
