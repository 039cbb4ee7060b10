// Prints the pages of what can be ordered, in one country if COUNTRY names it, then one product with its texts.
import java.io.IOException;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Pattern;

public class Recipe {
    static final String BASE = System.getenv("VITRINE_URL");
    static final String KEY = System.getenv("VITRINE_KEY");
    static final int TRIES = 5;
    static final Pattern NEXT = Pattern.compile("<([^>]*)>; rel=\"next\"");
    static final HttpClient CLIENT = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();

    /** The body is the error as JSON: decide by its `type`. */
    static class ApiException extends IOException {
        ApiException(HttpResponse<String> response) {
            super(response.statusCode() + " " + response.body());
        }
    }

    static HttpResponse<String> get(String target) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(BASE + target))
            .header("X-Api-Key", KEY).timeout(Duration.ofSeconds(10)).build();
        for (int attempt = 1; ; attempt++) {
            var response = CLIENT.send(request, BodyHandlers.ofString());
            int status = response.statusCode();
            if (status == 200) return response;
            if (status != 429 && status != 503 || attempt == TRIES) throw new ApiException(response);
            long seconds = response.headers().firstValueAsLong("Retry-After").orElse(1);
            Thread.sleep(1000 * seconds + ThreadLocalRandom.current().nextLong(1000));
        }
    }

    /** What the page's Link header says of the next one: a query. Not for URI.resolve, which drops the last segment. */
    static String next(HttpResponse<String> page) {
        var link = NEXT.matcher(String.join(", ", page.headers().allValues("Link")));
        return link.find() ? link.group(1) : null;
    }

    public static void main(String[] arguments) throws Exception {
        var country = System.getenv("COUNTRY");
        var query = "?is_orderable=true" + (country == null ? "" : "&countries_redeemable_in=" + country);
        while (query != null) {
            var page = get("/product" + query);
            System.out.println(page.body()); // for your JSON library
            query = next(page);
        }
        if (arguments.length > 0) {
            System.out.println(get("/product/" + arguments[0] + "?content=html").body());
        }
    }
}
