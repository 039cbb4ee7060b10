//! Programs that make one request and print the answer, with nothing but the standard library of each language (PHP: with
//! curl). Errors go to standard error, and end the program with a failure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Part, Request, Template};

/// Characters of literal values that are percent-encoded: all but the unreserved ones (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Quotes a text; characters of `special`, and the quote, get a backslash.
fn quoted(text: &str, quote: char, special: &[char]) -> String {
    let mut result = String::from(quote);
    for c in text.chars() {
        if c == quote || c == '\\' || special.contains(&c) {
            result.push('\\');
        }
        result.push(c);
    }
    result.push(quote);
    result
}

fn single_quoted(text: &str) -> String {
    quoted(text, '\'', &[])
}

fn double_quoted(text: &str) -> String {
    quoted(text, '"', &[])
}

impl Template {
    /// Returns an expression that joins the parts with an operator.
    fn joined(
        &self,
        operator: &str,
        literal: impl Fn(&str) -> String,
        variable: impl Fn(&str) -> String,
    ) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Literal(text) => literal(text),
            Part::Variable(name) => variable(name),
        });
        let parts: Vec<String> = parts.collect();
        match parts.is_empty() {
            true => literal(""),
            false => parts.join(operator),
        }
    }

    /// Returns a string literal with the variables in it, or the variable if there is nothing else.
    fn interpolated(&self, form: &Interpolation, variable: impl Fn(&str) -> String) -> String {
        match self.0.as_slice() {
            [Part::Variable(name)] => variable(name),
            parts if self.has_variables() => {
                let insides = parts.iter().map(|part| match part {
                    Part::Literal(text) => (form.escaped)(text),
                    Part::Variable(name) => format!("{}{}}}", form.open, variable(name)),
                });
                let inside: String = insides.collect();
                format!("{}{inside}{}", form.start, form.end)
            }
            _ => (form.plain)(self.as_literal().unwrap_or_default()),
        }
    }
}

/// String literals of a language that may have expressions in them.
struct Interpolation {
    /// Literal without expressions.
    plain: fn(&str) -> String,
    start: &'static str,
    end: &'static str,
    /// Text in a literal with expressions.
    escaped: fn(&str) -> String,
    /// Begin of an expression, which `}` ends.
    open: &'static str,
}

/// Returns a text between double quotes, without these.
fn escaped(text: &str, quote: char, special: &[char]) -> String {
    let quoted = quoted(text, quote, special);
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns a word of a line of shell.
pub(super) fn shell_word(template: &Template) -> String {
    match template.as_literal() {
        Some(text) => format!("'{}'", text.replace('\'', "'\\''")),
        None => {
            let text = |text: &str| escaped(text, '"', &['$', '`']);
            let inside = template.joined("", text, |name| format!("${name}"));
            format!("\"{inside}\"")
        }
    }
}

pub(super) fn javascript(request: &Request) -> String {
    let form = Interpolation {
        plain: single_quoted,
        start: "`",
        end: "`",
        escaped: |text| escaped(text, '`', &['$']),
        open: "${",
    };
    let value =
        |template: &Template| template.interpolated(&form, |name| format!("process.env.{name}"));
    let address = request.url.interpolated(&form, |name| {
        format!("encodeURIComponent(process.env.{name})")
    });
    let mut program = String::new();
    let target = if request.query.is_empty() {
        address
    } else {
        program += &format!("const url = new URL({address});\n");
        for (name, template) in &request.query {
            program += &format!("url.searchParams.append('{name}', {});\n", value(template));
        }
        program.push('\n');
        "url".to_owned()
    };
    let headers: Vec<String> = request
        .headers
        .iter()
        .map(|(name, template)| format!("'{name}': {}", value(template)))
        .collect();
    program += &match headers.as_slice() {
        [] => format!("const response = await fetch({target});\n"),
        [one] => {
            format!("const response = await fetch({target}, {{\n  headers: {{ {one} }},\n}});\n")
        }
        all => format!(
            "const response = await fetch({target}, {{\n  headers: {{\n    {},\n  }},\n}});\n",
            all.join(",\n    ")
        ),
    };
    program += "const body = await response.text();\nif (!response.ok) throw new Error(`${response.status}: ${body}`);\n";
    if request.prints_head {
        program += "console.log(response.status, Object.fromEntries(response.headers));\n";
    }
    program + "console.log(body);\n"
}

pub(super) fn python(request: &Request) -> String {
    let form = Interpolation {
        plain: double_quoted,
        start: "f\"",
        end: "\"",
        escaped: |text| {
            let escaped = escaped(text, '"', &[]);
            escaped.replace('{', "{{").replace('}', "}}")
        },
        open: "{",
    };
    let value = |template: &Template| match template.0.as_slice() {
        [Part::Variable(name)] => format!("os.environ[\"{name}\"]"),
        // Python before 3.12 has no quotes of the literal within it.
        _ => template.interpolated(&form, |name| format!("os.environ['{name}']")),
    };
    let address = request.address().interpolated(&form, |name| {
        format!("urllib.parse.quote(os.environ['{name}'], safe='')")
    });
    let mut program = String::new();
    let is_quoted = request.url.has_variables();
    for (module, is_used) in [
        ("os", request.has_variables()),
        ("sys", true),
        ("urllib.error", true),
        ("urllib.parse", is_quoted || !request.query.is_empty()),
        ("urllib.request", true),
    ] {
        if is_used {
            program += &format!("import {module}\n");
        }
    }
    program.push('\n');
    if !request.query.is_empty() {
        program += "query = urllib.parse.urlencode([\n";
        for (name, template) in &request.query {
            program += &format!("    (\"{name}\", {}),\n", value(template));
        }
        program += "])\n";
    }
    let query = if request.query.is_empty() {
        ""
    } else {
        " + query"
    };
    program += &format!("request = urllib.request.Request({address}{query})\n");
    for (name, template) in &request.headers {
        program += &format!("request.add_header(\"{name}\", {})\n", value(template));
    }
    program += "try:\n    with urllib.request.urlopen(request) as response:\n";
    if request.prints_head {
        program += "        print(response.status, dict(response.headers))\n";
    }
    program
        + "        print(response.read().decode())\n\
           except urllib.error.HTTPError as error:\n    sys.exit(f\"{error.code}: {error.read().decode()}\")\n"
}

pub(super) fn go(request: &Request) -> String {
    let getenv = |name: &str| format!("os.Getenv(\"{name}\")");
    // Without blanks, as `gofmt` has it in arguments.
    let value = |template: &Template| template.joined("+", double_quoted, getenv);
    let path_escaped = |name: &str| format!("url.PathEscape(os.Getenv(\"{name}\"))");
    let mut address = request.address().joined("+", double_quoted, path_escaped);
    let mut program = "package main\n\nimport (\n".to_owned();
    let has_query = !request.query.is_empty();
    for (package, is_used) in [
        ("fmt", true),
        ("io", true),
        ("log", true),
        ("net/http", true),
        ("net/url", has_query || request.url.has_variables()),
        ("os", request.has_variables()),
    ] {
        if is_used {
            program += &format!("\t\"{package}\"\n");
        }
    }
    program += ")\n\nfunc main() {\n";
    if has_query {
        program += "\tquery := url.Values{}\n";
        for (name, template) in &request.query {
            program += &format!("\tquery.Add(\"{name}\", {})\n", value(template));
        }
        address += "+query.Encode()";
    }
    let check = "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n";
    program += &format!("\trequest, err := http.NewRequest(\"GET\", {address}, nil)\n{check}");
    for (name, template) in &request.headers {
        program += &format!("\trequest.Header.Set(\"{name}\", {})\n", value(template));
    }
    program += &format!(
        "\tresponse, err := http.DefaultClient.Do(request)\n{check}\tbody, err := io.ReadAll(response.Body)\n\
         \tresponse.Body.Close()\n{check}\tif response.StatusCode >= 400 {{\n\t\tlog.Fatalf(\"%s: %s\", response.Status, body)\n\t}}\n"
    );
    if request.prints_head {
        program += "\tfmt.Println(response.Status, response.Header)\n";
    }
    program + "\tfmt.Println(string(body))\n}\n"
}

pub(super) fn php(request: &Request) -> String {
    let getenv = |name: &str| format!("getenv('{name}')");
    let url_escaped = |name: &str| format!("rawurlencode(getenv('{name}'))");
    let mut address = request.address().joined(" . ", single_quoted, url_escaped);
    let mut program = "<?php\n".to_owned();
    if !request.query.is_empty() {
        program += "$query = implode('&', [\n";
        for (name, template) in &request.query {
            let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
            let mut pair = Template::literal(&format!("{name}="));
            for part in &template.0 {
                match part {
                    Part::Literal(text) => pair.push(&encoded(text)),
                    variable @ Part::Variable(_) => pair.append(Template(vec![variable.clone()])),
                }
            }
            program += &format!("    {},\n", pair.joined(" . ", single_quoted, url_escaped));
        }
        program += "]);\n";
        address += " . $query";
    }
    program += &format!("$request = curl_init({address});\ncurl_setopt_array($request, [\n");
    if !request.headers.is_empty() {
        program += "    CURLOPT_HTTPHEADER => [\n";
        for (name, template) in &request.headers {
            let mut header = Template::literal(&format!("{name}: "));
            header.append(template.clone());
            program += &format!("        {},\n", header.joined(" . ", single_quoted, getenv));
        }
        program += "    ],\n";
    }
    if request.prints_head {
        program += "    CURLOPT_HEADER => true,\n";
    }
    program
        + "    CURLOPT_RETURNTRANSFER => true,\n]);\n\
           $body = curl_exec($request);\n\
           if ($body === false || curl_getinfo($request, CURLINFO_RESPONSE_CODE) >= 400) {\n    \
           fwrite(STDERR, $body === false ? curl_error($request) : $body);\n    exit(1);\n}\n\
           echo $body, \"\\n\";\n"
}

pub(super) fn ruby(request: &Request) -> String {
    let form = Interpolation {
        plain: single_quoted,
        start: "\"",
        end: "\"",
        escaped: |text| escaped(text, '"', &['#']),
        open: "#{",
    };
    let value =
        |template: &Template| template.interpolated(&form, |name| format!("ENV.fetch('{name}')"));
    let address = request.url.interpolated(&form, |name| {
        format!("URI.encode_www_form_component(ENV.fetch('{name}'))")
    });
    let mut program = format!("require 'net/http'\n\nuri = URI({address})\n");
    if !request.query.is_empty() {
        program += "uri.query = URI.encode_www_form([\n";
        for (name, template) in &request.query {
            program += &format!("  ['{name}', {}],\n", value(template));
        }
        program += "])\n";
    }
    program += "request = Net::HTTP::Get.new(uri)\n";
    for (name, template) in &request.headers {
        program += &format!("request['{name}'] = {}\n", value(template));
    }
    program += "response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') do |http|\n  \
                http.request(request)\nend\n\
                abort \"#{response.code}: #{response.body}\" unless response.is_a?(Net::HTTPSuccess)\n\n";
    if request.prints_head {
        program += "puts response.code, response.to_hash\n";
    }
    program + "puts response.body\n"
}

impl Request {
    /// Returns the URL up to where the encoded query begins.
    fn address(&self) -> Template {
        let mut address = self.url.clone();
        address.push(if self.query.is_empty() { "" } else { "?" });
        address
    }

    fn has_variables(&self) -> bool {
        let pairs = self.query.iter().chain(&self.headers);
        let mut values = pairs.map(|(_, value)| value);
        self.url.has_variables() || values.any(Template::has_variables)
    }
}
