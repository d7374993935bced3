//! Images in a task's input: values that are `data:image/...;base64,...`. They are shown to the agent beside its message.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::fields::Fields;

/// What every vendor's models that can see are shown, but for the last.
const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// How many a task may bring. How large they are together is bounded by the manifest.
const MAX_IMAGES: usize = 16;

/// Names whose value is what the agent is told.
const TOLD: [&str; 2] = ["message", "topic"];

/// Whether a value is meant as an image.
pub(crate) fn is_image(value: &str) -> bool {
    value.starts_with("data:image/")
}

pub(crate) fn check(fields: &mut Fields<'_, '_>, input: &BTreeMap<String, String>) {
    let images = input.iter().filter(|(_, value)| is_image(value));
    for (nth, (name, value)) in images.enumerate() {
        let problem = if TOLD.contains(&name.as_str()) {
            Some(format!("expected words: put the image under another name, beside {name}"))
        } else if nth >= MAX_IMAGES {
            Some(format!("expected at most {MAX_IMAGES} images"))
        } else {
            problem(value)
        };
        if let Some(problem) = problem {
            fields.refuse_in("input", name, problem);
        }
    }
}

fn problem(value: &str) -> Option<String> {
    let known = MEDIA_TYPES.join(", ");
    let Some((media_type, data)) = value.trim_start_matches("data:").split_once(";base64,") else {
        return Some("expected an image as data:image/png;base64,... with its bytes in base64".to_owned());
    };
    if !MEDIA_TYPES.contains(&media_type.to_ascii_lowercase().as_str()) {
        return Some(format!("expected an image of the type {known}, found {media_type}"));
    }
    match STANDARD.decode(data.trim_end()) {
        Ok(bytes) if !bytes.is_empty() => None,
        _ => Some("expected an image's bytes in base64, on one line".to_owned()),
    }
}
