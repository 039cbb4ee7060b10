"""Keeps a copy of what can be ordered in SQLite: the products, and the token that belongs to them."""
import http.client, json, os, random, sqlite3, sys, time, urllib.error, urllib.parse, urllib.request

BASE, KEY = os.environ["VITRINE_URL"], os.environ["VITRINE_KEY"]
FILTERS = [("is_orderable", "true")]  # other filters need another copy
WAIT, LONGEST_PAUSE = 45, 60

copy = sqlite3.connect(os.environ.get("COPY", "copy.db"))
copy.execute("CREATE TABLE IF NOT EXISTS product (code TEXT PRIMARY KEY, json TEXT NOT NULL)")
copy.execute("CREATE TABLE IF NOT EXISTS sync (token TEXT NOT NULL)")


def ask(token, wait):
    """Returns status, pause and body of the answer; status 0 if there is none."""
    query = FILTERS + ([("since", token), ("wait", wait)] if token else [])
    address = f"{BASE}/product/changes?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"X-Api-Key": KEY})
    try:
        try:
            answer = urllib.request.urlopen(request, timeout=WAIT + 15)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.code, int(answer.headers.get("Retry-After", 0)), json.load(answer)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return 0, 0, {"type": "no answer", "message": str(error)}


def apply(answer, is_first):
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
        copy.execute("INSERT INTO sync VALUES (?)", (answer["next"],))


stored = copy.execute("SELECT token FROM sync").fetchone()
token, wait, failures = stored and stored[0], WAIT, 0
while True:
    status, pause, body = ask(token, wait)
    if status == 200:
        apply(body, is_first=not token)
        print(len(body["changes"]), "changes", flush=True)
        token, wait, failures = body["next"], 0 if body["has_more"] else WAIT, 0
    elif status == 410 and body["type"] == "changes_gone" and token:
        token = None  # begin anew, and replace the copy
    elif status in (0, 429) or status >= 500:
        failures += 1
        pause = max(pause, min(2**failures, LONGEST_PAUSE))
    else:
        sys.exit(f"{body['type']}: {body['message']}")
    if pause:
        time.sleep(pause + random.random())
