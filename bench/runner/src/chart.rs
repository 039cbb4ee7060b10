//! The results as a picture: CPU time a request on a logarithmic scale, readable on light and dark grounds.

use std::fmt::Write as _;

use crate::report::{Results, Row, number, ratio};
use crate::work::Work;

/// Work in the picture, one group of bars each.
const GROUPS: [Work; 3] = [Work::Product, Work::Page, Work::PageGzip];

const WIDTH: f64 = 860.0;
/// Left and right end of bars.
const LEFT: f64 = 270.0;
const RIGHT: f64 = 700.0;
const BAR: f64 = 22.0;

/// The picture as SVG.
pub fn svg(results: &Results) -> String {
    let groups: Vec<(Work, Vec<Row>)> = GROUPS
        .into_iter()
        .map(|work| (work, results.rows(work)))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let all = || groups.iter().flat_map(|(_, rows)| rows).map(|row| row.cpu);
    let least = all().fold(f64::INFINITY, f64::min).log10().floor();
    let greatest = all().fold(1.0, f64::max).log10().ceil().max(least + 1.0);
    let x = |cpu: f64| LEFT + (cpu.log10() - least) / (greatest - least) * (RIGHT - LEFT);

    let mut body = String::new();
    let mut y = 56.0;
    for (work, rows) in &groups {
        text(&mut body, 12.0, y + 14.0, "group", &plain(work.title()));
        y += 24.0;
        for row in rows {
            let class = if row.kind.name == "vitrine" {
                "own"
            } else {
                "bar"
            };
            let middle = y + BAR / 2.0 + 1.0;
            let name = plain(row.kind.title);
            text(&mut body, LEFT - 8.0, middle, "name", &name);
            let width = (x(row.cpu) - LEFT).max(2.0);
            let _ = writeln!(
                body,
                r#"<rect class="{class}" x="{LEFT}" y="{y:.1}" width="{width:.1}" height="{:.1}" rx="2"/>"#,
                BAR - 5.0
            );
            let label = format!("{} µs · {}", number(row.cpu), ratio(row.ratio.0));
            text(&mut body, LEFT + width + 8.0, middle, "value", &label);
            y += BAR;
        }
        y += 18.0;
    }
    let mut lines = String::new();
    let mut power = least;
    while power <= greatest {
        let place = x(10_f64.powf(power));
        let _ = writeln!(
            lines,
            r#"<line x1="{place:.1}" y1="48" x2="{place:.1}" y2="{y:.1}"/>"#
        );
        let label = number(10_f64.powf(power))
            .replace(".00", "")
            .replace(".0", "");
        text(&mut lines, place, y + 14.0, "scale", &format!("{label} µs"));
        power += 1.0;
    }
    let height = y + 30.0;
    let title = "CPU time of the server for one request, database included (less is better)";
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{title}\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"12\" y=\"24\">{title}</text>\n\
         <text class=\"note\" x=\"12\" y=\"42\">{:} products; logarithmic scale; behind each bar: how many times Vitrine's</text>\n\
         {lines}{body}</svg>\n",
        number_of(results.products)
    )
}

/// Mid-tones, so that one picture is readable on both grounds; text follows the reader's choice where it can.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#444}\
.title{font-weight:600;font-size:15px}.note,.scale{font-size:11px;fill:#777}.group{font-weight:600}\
.name{text-anchor:end;dominant-baseline:middle;font-size:12px}.value{dominant-baseline:middle;font-size:12px}\
.scale{text-anchor:middle}line{stroke:#888;stroke-opacity:.3}.own{fill:#d9480f}.bar{fill:#4c8fbd}\
@media (prefers-color-scheme:dark){text{fill:#ccc}.note,.scale{fill:#999}}";

fn text(out: &mut String, x: f64, y: f64, class: &str, content: &str) {
    let _ = writeln!(
        out,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{content}</text>"#
    );
}

/// Markdown's marks taken out, XML's escaped.
fn plain(title: &str) -> String {
    let title = title.replace(['*', '`'], "");
    title.replace('&', "&amp;").replace('<', "&lt;")
}

fn number_of(products: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let shown = number(products as f64);
    shown
}
