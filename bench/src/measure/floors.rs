//! What the machine itself needs: to sync a page, to go over loopback and back, to insert rows in batches.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use rusqlite::Connection as Database;

use crate::ground::Ground;
use crate::http::{Connection, Request};
use crate::machine::WeatherWatch;
use crate::report::{Figure, Report};
use crate::samples::{Samples, micros, millis};
use crate::settings::Settings;

pub struct Floors {
    pub sync: Samples,
    pub round_trip: Samples,
    pub rows_per_second: f64,
}

const PAGE: [u8; 4096] = [7; 4096];
const SYNCS: usize = 1000;
const ROUND_TRIPS: usize = 3000;
const BATCHES: usize = 500;
const BATCH: usize = 100;

/// About what a row of ours weighs.
const ROW: usize = 400;

pub async fn measure(settings: &Settings, report: &mut Report) -> anyhow::Result<Floors> {
    let watch = WeatherWatch::begin()?;
    let sync = syncs(&settings.data)?;
    let weather = watch.end()?;
    report.add(Figure::new("floor: fdatasync of 4 KiB appended, p50", millis(sync.p50()), "ms", weather));
    report.add(Figure::new("floor: fdatasync of 4 KiB appended, p99", millis(sync.p99()), "ms", weather));
    report.add(Figure::new("floor: fdatasync, one after the other", sync.per_second(), "/s", weather));
    let watch = WeatherWatch::begin()?;
    let round_trip = round_trips().await?;
    let weather = watch.end()?;
    report.add(Figure::new(
        "floor: loopback call of the model, p50",
        micros(round_trip.p50()),
        "µs",
        weather,
    ));
    report.add(Figure::new(
        "floor: loopback call of the model, p99",
        micros(round_trip.p99()),
        "µs",
        weather,
    ));
    let watch = WeatherWatch::begin()?;
    let rows_per_second = batched_inserts(&settings.data)?;
    let name = "floor: SQLite inserts, synced every 100";
    report.add(Figure::new(name, rows_per_second, "rows/s", watch.end()?));
    Ok(Floors { sync, round_trip, rows_per_second })
}

fn syncs(folder: &Path) -> anyhow::Result<Samples> {
    let path = folder.join("floor-sync");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
    let mut samples = Samples::default();
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        samples.since(start);
    }
    std::fs::remove_file(path)?;
    Ok(samples)
}

async fn round_trips() -> anyhow::Result<Samples> {
    let ground = Ground::start().await?;
    let url = ground.model_url();
    let address = url.trim_start_matches("http://").trim_end_matches("/v1").parse();
    let mut connection = Connection::open(address.context("not an address")?, None).await?;
    let body = r#"{"model":"scripted","messages":[{"role":"user","content":"hello"}]}"#;
    let request = Request { method: "POST", path: "/v1/chat/completions", accept: "*/*", body };
    let mut samples = Samples::default();
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        let answer = connection.call(&request).await?;
        samples.since(start);
        ensure!(answer.status == 200, "the model refused: {}", answer.status);
    }
    Ok(samples)
}

fn batched_inserts(folder: &Path) -> anyhow::Result<f64> {
    let path = folder.join("floor-rows.db");
    let mut database = Database::open(&path)?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")?;
    let body = "x".repeat(ROW);
    let start = Instant::now();
    for _ in 0..BATCHES {
        let transaction = database.transaction()?;
        for _ in 0..BATCH {
            transaction.prepare_cached("INSERT INTO rows (body) VALUES (?1)")?.execute([&body])?;
        }
        transaction.commit()?;
    }
    let took = start.elapsed();
    drop(database);
    for suffix in ["", "-wal", "-shm"] {
        // The last connection removes the two beside the database itself.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    Ok((BATCHES * BATCH) as f64 / took.as_secs_f64())
}
