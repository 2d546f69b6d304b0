//! Parameters and answers, as both sides read and write them.

use crate::protocol::{Cell, Parameters, Type};
use crate::statement::shape;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, to_sql_checked};

/// A parameter.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Int(i64),
    Text(String),
    Uuid(u128),
    Bool(bool),
    /// Microseconds since 1970.
    Time(u64),
    List(Vec<Self>),
    /// The numbers of all transactions that have stored jobs.
    Transactions,
}

/// The year 2000, from which the server counts, in microseconds since 1970.
const EPOCH: i64 = 946_684_800_000_000;

impl Value {
    fn bytes(&self, r#type: Type) -> Option<Vec<u8>> {
        Some(match self {
            Self::Null => return None,
            Self::Int(number) => number.to_be_bytes().into(),
            Self::Text(text) => text.as_bytes().into(),
            Self::Uuid(id) => id.to_be_bytes().into(),
            Self::Bool(is) => vec![u8::from(*is)],
            Self::Time(micros) => (micros.cast_signed() - EPOCH).to_be_bytes().into(),
            Self::List(values) => list(values, r#type.element()),
            Self::Transactions => unreachable!("each side has its own numbers"),
        })
    }
}

fn list(values: &[Value], element: Type) -> Vec<u8> {
    let length = i32::try_from(values.len()).expect("a short list");
    let head = [i32::from(length > 0), 1, element.oid()];
    let mut bytes: Vec<u8> = head.iter().flat_map(|number| number.to_be_bytes()).collect();
    if length > 0 {
        bytes.extend(length.to_be_bytes());
        bytes.extend(1_i32.to_be_bytes());
    }
    for value in values {
        let value = value.bytes(element);
        let length = value.as_ref().map_or(-1, |value| i32::try_from(value.len()).unwrap_or(-1));
        bytes.extend(length.to_be_bytes());
        bytes.extend(value.unwrap_or_default());
    }
    bytes
}

fn encoded(text: &str, values: &[Value]) -> Vec<Option<Vec<u8>>> {
    let types = shape(text).0;
    assert_eq!(types.len(), values.len(), "the parameters of {text}");
    values.iter().zip(types).map(|(value, r#type)| value.bytes(*r#type)).collect()
}

/// For the imitation.
pub(super) fn parameters(text: &str, values: &[Value]) -> Parameters {
    Parameters::of(encoded(text, values))
}

/// The types of the parameters.
pub(super) fn types(text: &str) -> Vec<tokio_postgres::types::Type> {
    let of = |r#type: &Type| tokio_postgres::types::Type::from_oid(r#type.oid().cast_unsigned());
    shape(text).0.iter().filter_map(of).collect()
}

/// Whether clients of users' run a statement.
pub(super) fn is_of_users(text: &str) -> bool {
    super::step::OF_USERS.iter().any(|(_, known, _)| *known == text)
}

/// For PostgreSQL.
pub(super) fn raw(text: &str, values: &[Value]) -> Vec<Raw> {
    encoded(text, values).into_iter().map(Raw).collect()
}

#[derive(Debug)]
pub(super) struct Raw(Option<Vec<u8>>);

impl ToSql for Raw {
    fn to_sql(
        &self,
        _: &tokio_postgres::types::Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(value) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(value);
        Ok(IsNull::No)
    }

    fn accepts(_: &tokio_postgres::types::Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Raw {
    fn from_sql(
        _: &tokio_postgres::types::Type,
        raw: &'a [u8],
    ) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw.to_vec())))
    }

    fn from_sql_null(
        _: &tokio_postgres::types::Type,
    ) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &tokio_postgres::types::Type) -> bool {
        true
    }
}

/// A row of PostgreSQL's. Its columns must have the types that the imitation says.
pub(super) fn cells(text: &str, row: &tokio_postgres::Row) -> Vec<Cell> {
    let types = shape(text).1;
    let oids: Vec<_> = row.columns().iter().map(|column| column.type_().oid()).collect();
    let expected: Vec<_> = types.iter().map(|r#type| r#type.oid().cast_unsigned()).collect();
    if !types.is_empty() {
        assert_eq!(oids, expected, "the columns of {text}");
    }
    let cell = |(n, r#type): (usize, &Type)| {
        let Raw(raw) = row.get(n);
        Cell::read(*r#type, raw)
    };
    types.iter().enumerate().map(cell).collect()
}
