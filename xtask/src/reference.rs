//! The pages of `docs/reference`, as the program itself prints them (`ostler reference`).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Writes every page that is not this version's, and says which.
pub fn write() -> Result<Vec<String>> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder)?;
    for page in differing(&folder)? {
        println!("{} {}", if page.text.is_some() { "wrote" } else { "removed" }, page.name);
        let path = folder.join(&page.name);
        match page.text {
            Some(text) => std::fs::write(&path, text),
            None => std::fs::remove_file(&path),
        }
        .with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(Vec::new())
}

/// Every page that is not this version's.
pub fn check() -> Result<Vec<String>> {
    let pages = differing(&folder()?)?.into_iter();
    Ok(pages
        .map(|page| format!("docs/reference/{}: not this version's; run cargo xtask reference", page.name))
        .collect())
}

/// A page as it should be; none if it should not be there.
struct Page {
    name: String,
    text: Option<String>,
}

fn differing(folder: &Path) -> Result<Vec<Page>> {
    let printed = printed()?;
    let mut pages: Vec<Page> = std::fs::read_dir(folder)
        .map(|entries| entries.filter_map(Result::ok).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !printed.iter().any(|(known, _)| known == name))
        .map(|name| Page { name, text: None })
        .collect();
    for (name, text) in printed {
        if std::fs::read_to_string(folder.join(&name)).ok().as_ref() != Some(&text) {
            pages.push(Page { name, text: Some(text) });
        }
    }
    Ok(pages)
}

fn printed() -> Result<Vec<(String, String)>> {
    let binary = binary()?;
    let names = crate::output_of(&binary, &["reference"])?;
    let page = |name: &str| Ok((format!("{name}.md"), crate::output_of(&binary, &["reference", name])?));
    names.lines().map(page).collect()
}

/// The program, built if it has changed, beside this one. With some test beside it cargo chooses the features of
/// dependencies as it does for all tests, so that what `make test` builds and what stands here is the same.
fn binary() -> Result<String> {
    let build = ["build", "--quiet", "--workspace", "--bin", "ostler", "--test", "schema"];
    crate::output_of(&crate::cargo(), &build)?;
    let this = std::env::current_exe().context("where this program lies can't be told")?;
    Ok(this.with_file_name("ostler").to_string_lossy().into_owned())
}

fn folder() -> Result<PathBuf> {
    let top = crate::output_of("git", &["rev-parse", "--show-toplevel"])?;
    Ok(Path::new(top.trim()).join("docs/reference"))
}
