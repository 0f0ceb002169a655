//! Markup for pages and pictures: elements, and text that is escaped wherever it comes from.
//!
//! It takes less than a template does: a crate of templates comes with a parser of Rust, which
//! takes longer to compile than all of this command's options.

use std::fmt::Display;

use comfy_table::Table;

use crate::plot::Chart;
use crate::provenance::{ORIGIN, Provenance};
use crate::record;

/// The style of plots, which take their colours from it; and of the page around them.
const STYLE_OF_PLOTS: &str = include_str!("plot.css");
const STYLE: &str = include_str!("page.css");

const PAGE: &str = include_str!("page.html");

/// A page that needs nothing else: no script, nothing loaded. Above its body stands the command,
/// below it where the results come from.
pub(crate) fn page(provenance: &Provenance, body: &Markup) -> String {
    let (mut command, mut origin) = (Markup::default(), Markup::default());
    command.text(&provenance.command_line);
    definitions(&mut origin, &provenance.rows());
    let parts = [STYLE_OF_PLOTS, STYLE, &command.text, &body.text, ORIGIN, &origin.text, ""];
    PAGE.split("{}").zip(parts).flat_map(|(before, part)| [before, part]).collect()
}

/// A table whose first column has names, and whose others have numbers. It can be wider than the
/// window.
pub(crate) fn figures(body: &mut Markup, table: &Table) {
    let (header, rows) = record::cells(table);
    let lines = [("th", header)].into_iter().chain(rows.into_iter().map(|cells| ("td", cells)));
    let fill = |table: &mut Markup| {
        for (name, cells) in lines {
            table.element("tr", &[], |row| {
                for (at, text) in cells.iter().enumerate() {
                    let number: &[Attribute<'_>] = if at > 0 { &[("class", &"n")] } else { &[] };
                    row.leaf(name, number, text);
                }
            });
        }
    };
    body.element("div", &[("class", &"scroll")], |div| div.element("table", &[], fill));
}

/// A picture below its title. It can be wider than the window.
pub(crate) fn titled(title: &str, draw: impl FnOnce(&mut Markup)) -> Markup {
    let mut part = Markup::default();
    part.leaf("h2", &[], title);
    part.element("div", &[("class", &"wide")], draw);
    part
}

/// The picture in a part of a page as a document of its own, and what it is called: its label.
pub(crate) fn picture(part: &Markup) -> Option<(&str, String)> {
    const END: &str = "</svg>";
    let picture = part.text.get(part.text.find("<svg")?..part.text.rfind(END)? + END.len())?;
    let (head, inside) = picture.split_once('>')?;
    let label = head.split_once("aria-label=\"").and_then(|(_, rest)| rest.split('"').next());
    let space = "xmlns=\"http://www.w3.org/2000/svg\"";
    let style = with_plain_colours(STYLE_OF_PLOTS);
    Some((label.unwrap_or("picture"), format!("{head} {space}><style>{style}</style>{inside}\n")))
}

/// The style for programs that know no variables, too: before each declaration with one stands the
/// same with the variable's first value, the light one.
fn with_plain_colours(style: &str) -> String {
    let mut plain = style.to_owned();
    let light = style.split("@media").next().unwrap_or_default();
    let variables = light.split([';', '{']).filter_map(|part| part.trim().split_once(": "));
    for (name, value) in variables.filter(|(name, _)| name.starts_with("--")) {
        for property in ["fill", "stroke"] {
            let with_variable = format!("{property}: var({name})");
            let both = format!("{property}: {value}; {with_variable}");
            plain = plain.replace(&with_variable, &both);
        }
    }
    plain
}

/// Terms, and what there is to say of each.
pub(crate) fn definitions<T: Display, D: Display>(body: &mut Markup, entries: &[(T, D)]) {
    body.element("dl", &[], |list| {
        for (term, text) in entries {
            list.leaf("dt", &[], term.to_string().trim());
            list.leaf("dd", &[], text);
        }
    });
}

/// The name of an attribute, and its value.
pub(crate) type Attribute<'a> = (&'static str, &'a dyn Display);

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup {
    text: String,
    /// The same for a terminal, if it is a plot.
    pub(crate) chart: Option<Chart>,
}

impl Markup {
    /// An element, and what `inside` puts into it.
    pub(crate) fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) {
        self.text.extend(["<", name]);
        for (attribute, value) in attributes {
            self.text.extend([" ", attribute, "=\""]);
            self.text(value);
            self.text.push('"');
        }
        self.text.push('>');
        inside(self);
        self.text.extend(["</", name, ">"]);
    }

    /// An element with text in it.
    pub(crate) fn leaf(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        text: impl Display,
    ) {
        self.element(name, attributes, |inside| inside.text(text));
    }

    /// Text, without the characters that mean something in markup or in an attribute's value.
    pub(crate) fn text(&mut self, text: impl Display) {
        let text = text.to_string().replace('&', "&amp;").replace('<', "&lt;");
        self.text += &text.replace('>', "&gt;").replace('"', "&quot;");
    }

    /// A part that was made before.
    pub(crate) fn append(&mut self, part: &Markup) {
        self.text.push_str(&part.text);
    }

    #[cfg(test)]
    pub(crate) fn into_string(self) -> String {
        self.text
    }

    /// A line of a picture, from and to these coordinates: both x, then both y.
    pub(crate) fn line(&mut self, class: &str, [x1, x2, y1, y2]: [&dyn Display; 4]) {
        let place =
            [("class", &class as &dyn Display), ("x1", x1), ("x2", x2), ("y1", y1), ("y2", y2)];
        self.element("line", &place, |_| {});
    }

    /// A rectangle of a picture, with what else there is to say of it.
    pub(crate) fn rect(
        &mut self,
        more: &[Attribute<'_>],
        [x, y, width, height]: [&dyn Display; 4],
    ) {
        let place: [Attribute<'_>; 4] = [("x", x), ("y", y), ("height", height), ("width", width)];
        self.element("rect", &[more, &place].concat(), |_| {});
    }

    /// Words in a picture, which begin at these coordinates unless they have another anchor.
    pub(crate) fn label(
        &mut self,
        class: Option<&str>,
        x: impl Display,
        y: impl Display,
        anchor: Option<&str>,
        words: impl Display,
    ) {
        let class = class.as_ref().map(|class| ("class", class as &dyn Display));
        let anchor = anchor.as_ref().map(|anchor| ("text-anchor", anchor as &dyn Display));
        let place: [Attribute<'_>; 2] = [("x", &x), ("y", &y)];
        self.leaf("text", &[class.as_slice(), &place, anchor.as_slice()].concat(), words);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The values of an attribute, in their order.
    pub(crate) fn attribute(svg: &str, name: &str) -> Vec<f64> {
        let start = format!(" {name}=\"");
        let values = svg.split(&start).skip(1);
        values.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn a_picture_of_its_own_has_colours_where_no_variables_are_known() {
        let mut part = Markup::default();
        part.leaf("p", &[], "not of the picture");
        part.element("svg", &[("aria-label", &"a by b"), ("viewBox", &"0 0 1 1")], |svg| {
            svg.line("grid", [&0, &1, &0, &1]);
        });
        let (label, picture) = picture(&part).unwrap();
        assert_eq!(label, "a by b");
        assert!(
            picture.starts_with("<svg aria-label") && picture.contains("2000/svg"),
            "{picture}"
        );
        assert!(!picture.contains("not of"), "{picture}");
        let rule = "line.grid { stroke: #dcdfe3; stroke: var(--rule); }";
        assert!(picture.contains(rule), "{picture}");
        let before: Vec<&str> = picture.split("var(--").collect();
        let has_plain =
            |before: &&str| ["; fill: ", "; stroke: "].iter().any(|end| before.ends_with(end));
        assert!(before.len() > 10 && before[..before.len() - 1].iter().all(has_plain), "{picture}");
        assert!(super::picture(&Markup::default()).is_none());
        let mut nameless = Markup::default();
        nameless.element("svg", &[], |_| {});
        assert_eq!(super::picture(&nameless).unwrap().0, "picture");
    }

    #[test]
    fn text_and_values_are_escaped_and_elements_are_closed() {
        let mut markup = Markup::default();
        markup.element("p", &[("class", &"\"<x>\"")], |inside| {
            inside.text("a < b & c");
            inside.leaf("b", &[], 5);
        });
        assert_eq!(
            markup.into_string(),
            "<p class=\"&quot;&lt;x&gt;&quot;\">a &lt; b &amp; c<b>5</b></p>"
        );
    }
}
