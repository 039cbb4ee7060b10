//! Placeholders of pictures: the initials of the product on its colour.

use vitrine_model::hexadecimal::Hexadecimal;

/// A colour: red, green, blue.
pub(super) type Colour = [u8; 3];

/// Background of products without a colour.
const NO_COLOUR: Colour = [0x5f, 0x59, 0x4f];

/// Parses `#RRGGBB`.
pub(super) fn colour(text: &str) -> Option<Colour> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    let [_, red, green, blue] = number.to_be_bytes();
    Some([red, green, blue])
}

/// Returns the placeholder as SVG, 16 by 10.
pub(super) fn svg(name: &str, own: Option<Colour>) -> String {
    let ground = own.unwrap_or(NO_COLOUR);
    let ink = match luminance(ground) > MIDDLE {
        true => "#000000",
        false => "#ffffff",
    };
    let fill = Hexadecimal(&ground);
    let initials = initials(name);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 320 200\" width=\"320\" height=\"200\">\
         <rect width=\"320\" height=\"200\" fill=\"#{fill}\"/>\
         <text x=\"160\" y=\"100\" dy=\"0.35em\" text-anchor=\"middle\" font-family=\"system-ui, sans-serif\" \
         font-size=\"80\" font-weight=\"600\" fill=\"{ink}\">{initials}</text></svg>\n"
    )
}

/// Luminance at which black and white have the same contrast to the background (WCAG 2.2): 4.58.
const MIDDLE: f64 = 0.179;

/// Returns the luminance of a colour (WCAG 2.2, "relative luminance").
fn luminance([red, green, blue]: Colour) -> f64 {
    let linear = |channel: u8| match f64::from(channel) / 255.0 {
        share if share <= 0.04045 => share / 12.92,
        share => ((share + 0.055) / 1.055).powf(2.4),
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// Returns the first letters of the first two words. They are letters or digits, so they need no escaping.
fn initials(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let firsts = words.filter_map(|word| word.chars().next());
    firsts.take(2).flat_map(char::to_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initials_of_any_name_are_letters() {
        assert_eq!(initials("Pandanlane Hawker Pass"), "PH");
        assert_eq!(initials("<script>alert(1)</script>"), "SA");
        assert_eq!(initials("élan ß"), "ÉSS");
        assert_eq!(initials("  — "), "");
        assert!(svg("&\"<", None).contains("></text>"));
    }

    #[test]
    fn initials_have_contrast_on_all_colours() {
        for ground in [
            [0, 0, 0],
            [255, 255, 255],
            [118, 118, 118],
            [255, 0, 0],
            [0, 255, 255],
            [58, 125, 68],
        ] {
            let light = luminance(ground);
            let with_white = 1.05 / (light + 0.05);
            let with_black = (light + 0.05) / 0.05;
            let drawn = svg("A", Some(ground));
            let contrast = if drawn.contains("fill=\"#000000\">A") {
                with_black
            } else {
                with_white
            };
            assert!(contrast >= 4.5, "{ground:?}: {contrast}");
        }
        assert_eq!(colour("#3A7D44"), Some([0x3a, 0x7d, 0x44]));
        for none in ["", "3A7D44", "#3A7D4", "#3A7D4G", "#3A7D4é"] {
            assert_eq!(colour(none), None, "{none}");
        }
    }
}
