//! Downloads a copy of the store. A file of that name is there only once it is whole.

use std::{
    io,
    path::{Path, PathBuf},
};

use reqwest::{Method, Response};
use tokio::{
    fs::{self, File, OpenOptions},
    io::AsyncWriteExt,
};

use crate::{Client, ClientError};

impl Client {
    /// Returns how many bytes it holds. A file that is there already is replaced.
    pub async fn backup(&self, path: &Path) -> Result<u64, ClientError> {
        let answer = self.send(self.request(Method::POST, &["v1", "backup"])?).await?;
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let result = self.download(answer, &part).await;
        let renamed = match result {
            Ok(bytes) => rename(&part, path).await.map(|()| bytes).map_err(|error| failed(path, error)),
            Err(error) => Err(error),
        };
        if renamed.is_err() {
            // It may not even have been made; the error that matters is the first one.
            let _ = fs::remove_file(&part).await;
        }
        renamed
    }

    async fn download(&self, mut answer: Response, part: &Path) -> Result<u64, ClientError> {
        let mut file = create(part).await.map_err(|error| failed(part, error))?;
        let mut bytes = 0;
        while let Some(piece) = answer.chunk().await.map_err(|error| self.failed(error))? {
            file.write_all(&piece).await.map_err(|error| failed(part, error))?;
            bytes += piece.len() as u64;
        }
        file.flush().await.map_err(|error| failed(part, error))?;
        file.sync_all().await.map_err(|error| failed(part, error))?;
        Ok(bytes)
    }
}

/// It holds everything anybody ever told an agent: readable by its owner only.
async fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    options.mode(0o600);
    options.open(path).await
}

async fn rename(part: &Path, path: &Path) -> io::Result<()> {
    fs::rename(part, path).await?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).await?.sync_all().await
}

fn failed(path: &Path, error: io::Error) -> ClientError {
    ClientError::File { path: path.to_owned(), error }
}
