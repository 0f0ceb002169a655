//! Holds documents to their schemas: those of `lab/schema`, which `rcu schema` prints.
//!
//! The keywords are those that the schemas use; another one fails the test, so that no schema says
//! what is not checked. A validator from elsewhere brings dozens of crates: boon, the smallest that
//! was found, took 47 seconds to compile.

use std::fmt::{self, Display};
use std::mem;

use serde_json::{Map, Value, json};

/// Fails unless the document has the schema that it names, and that schema refuses it without any
/// one of its members, with one more, and with any value of another type.
pub(crate) fn hold(document: &Value) {
    let accepted = accepted_changes(document);
    assert!(accepted.is_empty(), "{} is accepted {accepted:?}", document["schema"]);
}

/// Fails unless the document has the schema that it names; the changes of it that this schema
/// accepts, in words.
pub(crate) fn accepted_changes(document: &Value) -> Vec<String> {
    let schema = named(document["schema"].as_str().expect("a document names its schema"));
    if let Err(why) = check(&schema, &schema, document, &At(None), None) {
        panic!("{}: {why}", document["schema"]);
    }
    let mut short = shortened(document);
    let mut places = vec![Vec::new()];
    add_places(&short, &[], &mut places);
    let (mut count, mut accepted) = (0, Vec::new());
    for place in places {
        for (words, changed) in changes(at(&mut short, &place)) {
            let own = mem::replace(at(&mut short, &place), changed);
            count += 1;
            if check(&schema, &schema, &short, &At(None), Some(&place)).is_ok() {
                accepted.push(format!("{}{words}", place.concat()));
            }
            *at(&mut short, &place) = own;
        }
    }
    assert!(count > 10, "{document}");
    accepted
}

fn named(name: &str) -> Value {
    let name = name.strip_prefix("quiescence/").expect("a name of ours");
    let path = format!("{}/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Where a value is: its name, as in `/name` or `/0`, below another place.
struct At<'a>(Option<(&'a At<'a>, &'a str)>);

impl Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |(above, name)| write!(f, "{above}{name}"))
    }
}

/// Checks a value by a schema that is a part of `root`. If the names to the only place are given in
/// which it differs from one that this schema accepts, nothing beside these is looked at again.
fn check(
    root: &Value,
    schema: &Value,
    value: &Value,
    at: &At<'_>,
    changed: Option<&[String]>,
) -> Result<(), String> {
    let below = |name: &str, schema: &Value, value: &Value| match changed {
        Some([next, ..]) if next != name => Ok(()),
        Some([_, rest @ ..]) => check(root, schema, value, &At(Some((at, name))), Some(rest)),
        _ => check(root, schema, value, &At(Some((at, name))), None),
    };
    for (keyword, operand) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            // Beside `properties`, which checks it.
            "additionalProperties" => assert_eq!(operand, false, "{schema}"),
            "$ref" => {
                let pointer = operand.as_str().and_then(|text| text.strip_prefix('#'));
                let schema = pointer.and_then(|pointer| root.pointer(pointer));
                let schema = schema.unwrap_or_else(|| panic!("{operand} is nowhere"));
                check(root, schema, value, at, changed)?;
            }
            "type" => {
                let one = |name: &Value| is_of_type(value, name.as_str().expect("a type's name"));
                let fits =
                    operand.as_array().map_or_else(|| one(operand), |all| all.iter().any(one));
                require(fits, || format!("{at} is {value}, not of type {operand}"))?;
            }
            "const" => require(value == operand, || format!("{at} is {value}, not {operand}"))?,
            "enum" => {
                let known = operand.as_array().expect("a list").contains(value);
                require(known, || format!("{at} is {value}, not one of {operand}"))?;
            }
            "anyOf" => {
                // Which of them accepted it before is not known.
                let mut all = operand.as_array().expect("a list").iter();
                let fits = all.any(|schema| check(root, schema, value, at, None).is_ok());
                require(fits, || format!("{at} is {value}, which is none of {operand}"))?;
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    below(&format!("/{number}"), operand, item)?;
                }
            }
            "properties" => {
                let is_closed = schema.get("additionalProperties").is_some();
                for (name, member) in value.as_object().into_iter().flatten() {
                    match operand.get(name) {
                        Some(schema) => below(&format!("/{name}"), schema, member)?,
                        None => require(!is_closed, || format!("{at}/{name} is unknown"))?,
                    }
                }
            }
            "required" => {
                for name in operand.as_array().expect("a list") {
                    let name = name.as_str().expect("a name");
                    let is_there = value.as_object().is_none_or(|own| own.contains_key(name));
                    require(is_there, || format!("{at}/{name} is missing"))?;
                }
            }
            other => panic!("{other} is no keyword that is checked here"),
        }
    }
    Ok(())
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("{other} is no type"),
    }
}

/// The same with at most two items in each array: the others have no more to say.
fn shortened(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().take(2).map(shortened).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), shortened(value)));
            members.collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// The names to each place below one.
fn add_places(value: &Value, to_it: &[String], places: &mut Vec<Vec<String>>) {
    let items = value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(number, item)| (number.to_string(), item));
    let members = value.as_object().into_iter().flatten();
    let members = members.map(|(name, member)| (name.clone(), member));
    for (name, below) in items.chain(members) {
        let place = [to_it, &[format!("/{name}")]].concat();
        places.push(place.clone());
        add_places(below, &place, places);
    }
}

/// The value to which these names lead.
fn at<'v>(document: &'v mut Value, place: &[String]) -> &'v mut Value {
    place.iter().fold(document, |value, name| match value {
        Value::Array(items) => &mut items[name[1..].parse::<usize>().expect("a number")],
        other => &mut other[&name[1..]],
    })
}

/// Each change of a value, with words for it: a member less, a member more, another type.
fn changes(value: &Value) -> Vec<(String, Value)> {
    let mut changes = vec![(" as another type".to_owned(), json!({ "unexpected": true }))];
    if let Value::Object(members) = value {
        let mut more = members.clone();
        more.insert("unexpected".to_owned(), true.into());
        changes.push((" with a member more".to_owned(), more.into()));
        for name in members.keys() {
            let mut less = members.clone();
            less.remove(name);
            changes.push((format!("/{name} removed"), less.into()));
        }
    }
    changes
}
