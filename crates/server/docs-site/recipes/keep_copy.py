"""Keeps a copy of what can be ordered in SQLite: the products, and the token that belongs to them."""
import http.client, json, os, random, sqlite3, sys, time, urllib.error, urllib.parse, urllib.request

BASE, KEY = os.environ["VITRINE_URL"], os.environ["VITRINE_KEY"]
FILTERS = [("is_orderable", "true")]  # other filters need another copy
WAIT, LONGEST_PAUSE = 45, 60

copy = sqlite3.connect(os.environ.get("COPY", "copy.db"))
copy.execute("CREATE TABLE IF NOT EXISTS product (code TEXT PRIMARY KEY, json TEXT NOT NULL)")
# `complete` is 0 until a new copy has had all products.
copy.execute("CREATE TABLE IF NOT EXISTS sync (token TEXT NOT NULL, complete INTEGER NOT NULL)")


def ask(token, wait):
    """Returns status, pause and body of the answer: status 0 if there is none, an empty body if it isn't JSON."""
    query = FILTERS + ([("since", token), ("wait", wait)] if token else [])
    address = f"{BASE}/product/changes?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"X-Api-Key": KEY})
    status, pause = 0, 0
    try:
        try:
            answer = urllib.request.urlopen(request, timeout=WAIT + 15)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            status, after = answer.code, answer.headers.get("Retry-After", "")
            pause = int(after) if after.isdigit() else 0
            body = json.loads(answer.read())
            return status, pause, body if isinstance(body, dict) else {}
    except ValueError:
        return status, pause, {}
    except (OSError, http.client.HTTPException) as error:
        return status, pause, {"message": str(error)}


def apply(answer, is_first, complete):
    """Applies an answer and stores its token, in one transaction."""
    with copy:
        if is_first:
            copy.execute("DELETE FROM product")
        for change in answer["changes"]:
            code, product = change["code"], change["product"]
            if product is None:
                copy.execute("DELETE FROM product WHERE code = ?", (code,))
            else:
                copy.execute("REPLACE INTO product VALUES (?, ?)", (code, json.dumps(product)))
        copy.execute("DELETE FROM sync")
        copy.execute("INSERT INTO sync VALUES (?, ?)", (answer["next"], complete))


stored = copy.execute("SELECT token, complete FROM sync").fetchone()
(token, complete), wait, failures = stored or (None, 0), WAIT, 0
while True:
    status, pause, body = ask(token, wait)
    if status == 200 and "next" in body:
        more = body["has_more"]
        complete = int(not more or (complete and token is not None))
        apply(body, token is None, complete)
        print(len(body["changes"]), "changes", flush=True)
        token, wait, failures = body["next"], 0 if more else WAIT, failures if more else 0
    else:
        why = f"status {status} {body.get('type', '')}: {body.get('message', 'no answer of this API')}"
        if status == 410 and body.get("type") == "changes_gone" and token:
            token = None  # start over, and replace the copy
        elif 300 <= status < 500 and status not in (408, 425, 429):
            sys.exit(why)
        print(why, file=sys.stderr, flush=True)
        failures += 1
        pause = max(pause, min(2**failures, LONGEST_PAUSE))
    if pause:
        time.sleep(pause + random.random())
