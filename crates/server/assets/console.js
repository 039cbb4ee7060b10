// The editor of an assortment with script: what is typed is checked by the server at once, as the button "Check" does without. Faults
// lead to their lines.

const form = document.querySelector('#editor');
const answer = document.querySelector('#answer');
const rules = form.elements.rules;

/** How long typing rests before the rules are checked, in milliseconds. */
const TYPING_PAUSE = 400;

let typing;
let underWay;
const announcer = document.createElement('p');
announcer.className = 'unseen';
announcer.setAttribute('aria-live', 'polite');
document.body.append(announcer);

/** Says that the answer is about something else than what the form has now; nothing of it can be saved. */
function outdate() {
  answer.setAttribute('aria-busy', 'true');
  for (const button of answer.querySelectorAll('button')) button.disabled = true;
}

function say(text) {
  const words = document.createElement('p');
  words.className = 'notice fault';
  words.textContent = text;
  answer.replaceChildren(words);
  announcer.textContent = text;
}

/** Checks the form as it is, and shows the server's answer. */
async function check() {
  underWay?.abort();
  const own = new AbortController();
  underWay = own;
  try {
    const body = new URLSearchParams(new FormData(form));
    const reply = await fetch(form.action, { method: 'POST', body, signal: own.signal });
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    if (own.signal.aborted) return;
    const found = page.querySelector('#answer');
    if (found) {
      answer.replaceChildren(...found.childNodes);
      announcer.textContent = answer.querySelector('h2')?.textContent ?? '';
    } else if (reply.status === 413) say('The rules are too long for this form: use “vitrine assortments set”.');
    else say(page.querySelector('.notice')?.textContent ?? 'The server gave no answer to the check.');
    answer.removeAttribute('aria-busy');
  } catch (error) {
    if (error.name === 'AbortError') return;
    say('The server can’t be reached. What you typed stands in the form.');
    answer.removeAttribute('aria-busy');
  }
}

form.addEventListener('input', () => {
  clearTimeout(typing);
  underWay?.abort();
  outdate();
  typing = setTimeout(check, TYPING_PAUSE);
});

form.addEventListener('submit', (event) => {
  event.preventDefault();
  clearTimeout(typing);
  outdate();
  check();
});

answer.addEventListener('click', (event) => {
  const line = Number(event.target.closest?.('a[data-line]')?.dataset.line);
  if (!line) return;
  event.preventDefault();
  const before = rules.value.split('\n').slice(0, line - 1);
  const start = before.reduce((length, text) => length + text.length + 1, 0);
  const end = rules.value.indexOf('\n', start);
  rules.focus();
  rules.setSelectionRange(start, end < 0 ? rules.value.length : end);
  rules.scrollTop = (rules.scrollHeight / rules.value.split('\n').length) * Math.max(0, line - 4);
});
