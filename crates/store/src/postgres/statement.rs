//! Statements with their values, and how they are sent: each by itself, or many in one message.
//!
//! A message of many is what makes a commit cheap. The database answers each statement that is sent by itself at once, and
//! every answer wakes the server, even if all were sent together: on a machine that is half idle that costs more than
//! the statements do.

use std::{borrow::Cow, fmt::Write as _};

use bytes::BytesMut;
use tokio_postgres::{
    Row, SimpleQueryMessage, SimpleQueryRow,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use super::{Failed, connection::Connection, row::Id};

/// A statement and what stands in the place of its parameters.
pub struct Call<'a> {
    pub sql: &'static str,
    pub values: Vec<Value<'a>>,
}

#[derive(Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Number(i64),
    Id(Id),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    Numbers(Vec<i64>),
    Ids(Vec<Id>),
    Texts(Vec<&'a str>),
}

impl<'a> Call<'a> {
    pub fn new(sql: &'static str, values: impl IntoIterator<Item = Value<'a>>) -> Self {
        Self { sql, values: values.into_iter().collect() }
    }

    /// By itself. Tells how many rows it touched.
    pub async fn execute(&self, connection: &Connection) -> Result<u64, Failed> {
        connection.execute(self.sql, &self.params()).await
    }

    /// By itself. Tells the rows it found.
    pub async fn read(&self, connection: &Connection) -> Result<Vec<Found>, Failed> {
        let rows = connection.all(self.sql, &self.params()).await?;
        Ok(rows.into_iter().map(Found::Read).collect())
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| value as _).collect()
    }
}

macro_rules! values {
    ($($type:ty => $variant:ident),*) => {$(
        impl<'a> From<$type> for Value<'a> {
            fn from(value: $type) -> Self {
                Value::$variant(value)
            }
        }
    )*};
}

values!(bool => Bool, i64 => Number, Id => Id, Cow<'a, str> => Text, &'a [u8] => Bytes,
    Vec<i64> => Numbers, Vec<Id> => Ids, Vec<&'a str> => Texts);

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text.into())
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Value::Text(text.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(text.into())
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Bool(value) => value.to_sql(kind, out),
            Value::Number(value) => value.to_sql(kind, out),
            Value::Id(value) => value.to_sql(kind, out),
            Value::Text(value) => value.to_sql(kind, out),
            Value::Bytes(value) => value.to_sql(kind, out),
            Value::Numbers(value) => value.to_sql(kind, out),
            Value::Ids(value) => value.to_sql(kind, out),
            Value::Texts(value) => value.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl Value<'_> {
    /// As it is written in a statement.
    fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("NULL"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(value) => out.push_str(&value.to_string()),
            Value::Id(id) => id.write(out),
            Value::Text(text) => quote(text, out),
            Value::Bytes(bytes) => {
                out.push_str("'\\x");
                bytes.iter().for_each(|byte| hex(*byte, out));
                out.push('\'');
            }
            Value::Numbers(numbers) => {
                array(numbers, "bigint", out, |number, out| out.push_str(&number.to_string()))
            }
            Value::Ids(ids) => array(ids, "uuid", out, Id::write),
            Value::Texts(texts) => array(texts, "text", out, |text, out| quote(text, out)),
        }
    }
}

impl Id {
    fn write(&self, out: &mut String) {
        out.push('\'');
        self.0.iter().for_each(|byte| hex(*byte, out));
        out.push('\'');
    }

    fn parse(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
        Some(Id(number.to_be_bytes()))
    }
}

fn hex(byte: u8, out: &mut String) {
    // Writing to a string can't fail.
    let _ = write!(out, "{byte:02x}");
}

fn array<T>(values: &[T], kind: &str, out: &mut String, mut write: impl FnMut(&T, &mut String)) {
    out.push_str("ARRAY[");
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write(value, out);
    }
    out.push_str("]::");
    out.push_str(kind);
    out.push_str("[]");
}

/// Connections say that a backslash means itself.
fn quote(text: &str, out: &mut String) {
    out.push('\'');
    for (place, part) in text.split('\'').enumerate() {
        if place > 0 {
            out.push_str("''");
        }
        out.push_str(part);
    }
    out.push('\'');
}

/// Statements that are sent in one message, and answered together.
pub struct Script<'c> {
    connection: &'c Connection,
    text: String,
}

impl<'c> Script<'c> {
    pub fn on(connection: &'c Connection) -> Self {
        Self { connection, text: String::new() }
    }

    pub fn say(&mut self, statement: &str) {
        self.text.push_str(statement);
        self.text.push(';');
    }

    /// The connection must have been made ready for it.
    pub fn call(&mut self, call: &Call<'_>) -> Result<(), Failed> {
        let name = self.connection.name_of(call.sql)?;
        self.text.push_str("EXECUTE ");
        self.text.push_str(&name);
        for (place, value) in call.values.iter().enumerate() {
            self.text.push(if place == 0 { '(' } else { ',' });
            value.write(&mut self.text);
        }
        self.text.push_str(if call.values.is_empty() { ";" } else { ");" });
        Ok(())
    }

    /// Tells all rows that the statements found. Behind one that fails none is carried out.
    pub async fn run(self) -> Result<Vec<Found>, Failed> {
        if self.text.contains('\0') {
            return Err(Failed::Unsaid);
        }
        let messages = self.connection.client.simple_query(&self.text).await?;
        let found = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(Found::Said(row)),
            _ => None,
        });
        Ok(found.collect())
    }
}

/// A row that was found.
pub enum Found {
    /// By a script: all of it is text.
    Said(SimpleQueryRow),
    /// By a statement of its own.
    Read(Row),
}

impl Found {
    pub fn text(&self, column: usize) -> Result<&str, Failed> {
        match self {
            Found::Said(row) => row.try_get(column)?.ok_or_else(|| unreadable("nothing")),
            Found::Read(row) => Ok(row.try_get(column)?),
        }
    }

    pub fn number(&self, column: usize) -> Result<u64, Failed> {
        self.optional_number(column)?.ok_or_else(|| unreadable("nothing"))
    }

    pub fn optional_number(&self, column: usize) -> Result<Option<u64>, Failed> {
        let number: Option<i64> = match self {
            Found::Said(row) => match row.try_get(column)? {
                Some(text) => Some(text.parse().map_err(|_| unreadable(text))?),
                None => None,
            },
            Found::Read(row) => row.try_get(column)?,
        };
        Ok(number.map(i64::cast_unsigned))
    }

    pub fn id<T: From<Id>>(&self, column: usize) -> Result<T, Failed> {
        match self {
            Found::Said(_) => {
                let text = self.text(column)?;
                Id::parse(text).map(T::from).ok_or_else(|| unreadable(text))
            }
            Found::Read(row) => Ok(row.try_get::<_, Id>(column)?.into()),
        }
    }
}

fn unreadable(text: &str) -> Failed {
    Failed::Body(format!("the database says {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<'a>(value: impl Into<Value<'a>>) -> String {
        let mut out = String::new();
        value.into().write(&mut out);
        out
    }

    #[test]
    fn values_are_written_as_the_database_reads_them() {
        assert_eq!(written("it's \\ 'so'"), "'it''s \\ ''so'''");
        assert_eq!(written(None::<&str>), "NULL");
        assert_eq!(written(-5), "-5");
        assert_eq!(written(i64::MIN), "-9223372036854775808");
        assert_eq!(written(Some(true)), "true");
        assert_eq!(written([0_u8, 0xfe].as_slice()), "'\\x00fe'");
        assert_eq!(written(Id([7; 16])), "'07070707070707070707070707070707'");
        assert_eq!(written(Vec::<Id>::new()), "ARRAY[]::uuid[]");
        assert_eq!(written(vec!["a,b", "{\"c\": '}"]), "ARRAY['a,b','{\"c\": ''}']::text[]");
    }

    #[test]
    fn an_id_is_read_as_the_database_writes_it() {
        let id = Id::parse("01020304-0506-0708-090a-0b0c0d0e0f10");
        assert_eq!(id, Some(Id([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])));
        assert_eq!(Id::parse("what"), None);
    }
}
