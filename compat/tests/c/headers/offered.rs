//! What a header offers: the names of its macros, functions, variables, types and constants, read
//! from the output of the preprocessor. Only what stands in headers of liburcu counts, not what
//! they include of the system's.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::Tree;

/// The names.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// With the number of parameters; -1 for a macro without parentheses, -2 for as many as one
    /// likes.
    pub(crate) macros: BTreeMap<String, i32>,
    /// All others.
    pub(crate) names: BTreeSet<String>,
}

/// What `header` offers in `tree`, to a program with these switches.
pub(crate) fn offered(tree: &Tree, header: &str, switches: &[&str]) -> Offered {
    let mut options = vec!["-E", "-dD"];
    options.extend(switches);
    let source = format!("#include <{header}>\n");
    let output = tree.compile("gcc -std=gnu11 -x c", &options, &source).expect(header);
    let mut offered = Offered::default();
    let mut text = String::new();
    let mut inside = false;
    for line in output.lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let file = marker.split('"').nth(1).unwrap_or("");
            inside = file
                .strip_prefix(tree.root.to_str().expect("a path in ASCII"))
                .is_some_and(|rest| rest.starts_with("/urcu"));
        } else if !inside {
            continue;
        } else if let Some(definition) = line.strip_prefix("#define ") {
            let (name, parameters) = parse_macro(definition);
            offered.macros.insert(name, parameters);
        } else if let Some(name) = line.strip_prefix("#undef ") {
            offered.macros.remove(name);
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    offered.names = declared(&tokens(&text));
    offered
}

fn parse_macro(definition: &str) -> (String, i32) {
    let end = definition
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(definition.len());
    let (name, rest) = definition.split_at(end);
    let parameters = match rest.strip_prefix('(') {
        None => -1,
        Some(rest) => {
            let inner = rest.split(')').next().unwrap_or("").trim();
            if inner.is_empty() {
                0
            } else if inner.contains("...") {
                -2
            } else {
                i32::try_from(inner.split(',').count()).expect("few parameters")
            }
        }
    };
    (name.to_owned(), parameters)
}

/// Identifiers, and punctuation of one character each. Numbers, strings and comments play no part.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            let mut is_escaped = false;
            let is_end = |c: char| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            };
            rest[1..].find(is_end).map_or(rest.len(), |end| end + 2)
        } else if first.is_ascii_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            end.unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let token = &rest[..length];
        if is_word(token) || length == 1 && first.is_ascii_punctuation() {
            found.push(token.to_owned());
        }
        rest = &rest[length..];
    }
    found
}

pub(crate) fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Words of the language that are followed by a parenthesis.
const ATTRIBUTES: [&str; 6] =
    ["__attribute__", "__typeof__", "__asm__", "__extension__", "__alignof__", "sizeof"];

/// What is declared at the top: tags and enumerators wherever they are, and the name of each
/// declaration.
fn declared(tokens: &[String]) -> BTreeSet<String> {
    let tokens = without_attributes(tokens);
    let mut names = BTreeSet::new();
    let mut statement: Vec<&str> = Vec::new();
    let (mut braces, mut parentheses) = (0, 0);
    let mut enumerators = false;
    for (at, &token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        let before = |by: usize| at.checked_sub(by).map_or("", |at| tokens[at]);
        match token {
            "{" => {
                enumerators = before(1) == "enum" || before(2) == "enum";
                braces += 1;
            }
            "}" => {
                enumerators = false;
                braces -= 1;
                let is_function = braces == 0 && statement.contains(&"(") && next != ";";
                if is_function && !statement.contains(&"typedef") && !statement.contains(&"=") {
                    names.extend(name_of(&statement));
                    statement.clear();
                }
            }
            ";" if braces == 0 => {
                names.extend(name_of(&statement));
                statement.clear();
            }
            "struct" | "union" | "enum" if is_word(next) && at + 2 < tokens.len() => {
                if tokens[at + 2] == "{" {
                    names.insert(next.to_owned());
                }
                statement.push(token);
            }
            "(" | ")" => {
                parentheses += if token == "(" { 1 } else { -1 };
                if braces == 0 {
                    statement.push(token);
                }
            }
            _ => {
                if enumerators
                    && is_word(token)
                    && parentheses == 0
                    && ["{", ","].contains(&before(1))
                {
                    names.insert(token.to_owned());
                }
                if braces == 0 {
                    statement.push(token);
                }
            }
        }
    }
    names
}

/// The name that a declaration gives: of a function, what stands before its parentheses; of a
/// pointer to one, what the first parentheses hold; of all others, the last word. A structure alone
/// has been counted by its tag.
fn name_of(statement: &[&str]) -> Option<String> {
    if let Some(open) = statement.iter().position(|token| *token == "(") {
        let is_pointer = statement.get(open + 1) == Some(&"*");
        let name = statement.get(if is_pointer { open + 2 } else { open - 1 });
        return name.filter(|name| is_word(name)).map(|name| (*name).to_owned());
    }
    let tag_alone = statement.len() == 2 && ["struct", "union", "enum"].contains(&statement[0]);
    let last = statement.iter().rev().find(|token| is_word(token))?;
    (!tag_alone && statement.len() > 1).then(|| (*last).to_owned())
}

/// Leaves out these words, and the parentheses behind each.
fn without_attributes(tokens: &[String]) -> Vec<&str> {
    let mut plain = Vec::new();
    let (mut is_behind, mut depth) = (false, 0);
    for token in tokens.iter().map(String::as_str) {
        is_behind |= ATTRIBUTES.contains(&token);
        if !is_behind || depth == 0 && token != "(" && !ATTRIBUTES.contains(&token) {
            is_behind = false;
            plain.push(token);
        }
        depth += i32::from(is_behind && token == "(") - i32::from(is_behind && token == ")");
        is_behind &= depth != 0 || token != ")";
    }
    plain
}
