//! A consistent copy of the store, made beside it and sent. Its file is gone once it is open.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use ostler_control::store::StoreError;

use crate::{data_folder, gate::App, parameters::Parameters, problem::Problem};

const PIECE: usize = 256 << 10;

pub async fn create(State(app): State<Arc<App>>, parameters: Parameters) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let _permit =
        app.backups.acquire().await.map_err(|_| StoreError::Unavailable("the server stops".into()))?;
    let copying = Arc::clone(&app);
    let copied = tokio::task::spawn_blocking(move || copy(&copying)).await;
    let copied = copied.unwrap_or_else(|error| Some(Err(StoreError::Read(error.to_string()))));
    let (file, length) = copied.ok_or_else(not_ours)??;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, HeaderValue::from(length)),
    ];
    Ok((headers, body(file)).into_response())
}

/// Makes the copy and removes its name at once: whatever happens from here on, nothing stays behind.
fn copy(app: &App) -> Option<Result<(File, u64), StoreError>> {
    let path = data_folder::backup_file(&app.data, app.runtime.random());
    let copied = app.store.backup(&path)?;
    let opened = || open_and_remove(&path).map_err(|error| StoreError::Read(error.to_string()));
    Some(copied.and_then(|_| opened()))
}

fn not_ours() -> Problem {
    Problem::new(StatusCode::CONFLICT, "backup_elsewhere", "this server's store is in PostgreSQL")
        .remedy("back the database up with pg_dump, or with what looks after it")
}

fn open_and_remove(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path);
    fs::remove_file(path)?;
    let file = file?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn body(file: File) -> Body {
    Body::from_stream(stream::try_unfold(file, |file| async move {
        let read = tokio::task::spawn_blocking(move || read_piece(file)).await;
        let (file, piece) = read.map_err(io::Error::other)??;
        Ok::<_, io::Error>(if piece.is_empty() { None } else { Some((piece, file)) })
    }))
}

fn read_piece(mut file: File) -> io::Result<(File, Bytes)> {
    let mut piece = BytesMut::zeroed(PIECE);
    let read = file.read(&mut piece)?;
    piece.truncate(read);
    Ok((file, piece.freeze()))
}
