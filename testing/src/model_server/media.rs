//! Data inside a request: whether it is base64, and what it says it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Base64 in its usual alphabet, whichever of the two it was in.
pub(super) fn in_usual_alphabet(data: &str) -> String {
    data.replace('-', "+").replace('_', "/")
}

/// What is wrong with an image, if anything is.
pub(super) fn image_fault(media_type: &str, data: &str) -> Option<String> {
    let Ok(bytes) = STANDARD.decode(data) else {
        return Some("invalid base64 data".to_owned());
    };
    match image_type(&bytes) {
        None => Some("could not process image".to_owned()),
        Some(found) if found != media_type => {
            Some(format!("the image was specified as {media_type}, but it appears to be {found}"))
        }
        Some(_) => None,
    }
}

/// Whether a text is base64, and of something.
pub(super) fn is_base64(data: &str) -> bool {
    STANDARD.decode(data).is_ok_and(|bytes| !bytes.is_empty())
}

/// What an image is, by its first bytes.
pub(super) fn image_type_of_base64(data: &str) -> Option<&'static str> {
    image_type(&STANDARD.decode(data).ok()?)
}

fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
