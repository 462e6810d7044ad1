// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A file in the making: rows are collected by column, and written as a row group as soon as there
//! are enough.

use std::fs::File;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tempfile::NamedTempFile;

use crate::part;
use crate::rows::{Cell, Column, Row, Type};

/// Rows in a row group. The rows of the current group are in memory.
const GROUP: usize = 1 << 16;

/// The values of a column that are in memory. A level is 1 for a value and 0 for null.
struct Values {
    levels: Vec<i16>,
    of: Of,
}

enum Of {
    Ints(Vec<i64>),
    Texts(Vec<ByteArray>),
    Flags(Vec<bool>),
}

impl Values {
    fn new(column: &Column) -> Self {
        Self {
            levels: Vec::new(),
            of: match column.of {
                Type::Int | Type::Time => Of::Ints(Vec::new()),
                Type::Text => Of::Texts(Vec::new()),
                Type::Flag => Of::Flags(Vec::new()),
            },
        }
    }

    fn push(&mut self, cell: Cell) {
        let is_value = match (&mut self.of, cell) {
            (Of::Ints(values), Cell::Int(value) | Cell::Time(value)) => keep(values, value),
            (Of::Texts(values), Cell::Text(value)) => {
                keep(values, value.map(|text| ByteArray::from(text.into_bytes())))
            }
            (Of::Flags(values), Cell::Flag(value)) => keep(values, value),
            // Cells and columns are made by one macro.
            _ => false,
        };
        self.levels.push(is_value.into());
    }
}

fn keep<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let is_value = value.is_some();
    values.extend(value);
    is_value
}

/// The schema in the language of Parquet.
fn schema(name: &str, columns: &[Column]) -> String {
    let column = |column: &Column| {
        let (of, annotation) = match column.of {
            Type::Int => ("INT64", ""),
            Type::Text => ("BYTE_ARRAY", " (STRING)"),
            Type::Flag => ("BOOLEAN", ""),
            Type::Time => ("INT64", " (TIMESTAMP(MICROS,true))"),
        };
        format!("OPTIONAL {of} {}{annotation};", column.name)
    };
    let columns: Vec<_> = columns.iter().map(column).collect();
    format!("message {name} {{ {} }}", columns.join(" "))
}

/// A file in the making, under a temporary name; removed if it is dropped.
pub struct Sheet<R> {
    writer: SerializedFileWriter<File>,
    temporary: NamedTempFile,
    path: PathBuf,
    columns: Vec<Values>,
    waiting: usize,
    rows: u64,
    row: PhantomData<R>,
}

/// A complete file that still has its temporary name.
pub(crate) struct Closed {
    pub(crate) temporary: NamedTempFile,
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
}

impl<R: Row> Sheet<R> {
    /// Starts the file at `path`, in a directory that exists.
    pub(crate) fn new(path: PathBuf, by: &str) -> Result<Self> {
        let named = || path.display().to_string();
        let schema = parse_message_type(&schema(R::TABLE, R::COLUMNS))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(by.to_string());
        let directory = path.parent().unwrap_or(Path::new("."));
        let temporary = part::create(directory).with_context(named)?;
        let file = temporary.as_file().try_clone().with_context(named)?;
        let properties = Arc::new(properties.build());
        let writer = SerializedFileWriter::new(file, Arc::new(schema), properties);
        Ok(Self {
            writer: writer.with_context(named)?,
            temporary,
            path,
            columns: R::COLUMNS.iter().map(Values::new).collect(),
            waiting: 0,
            rows: 0,
            row: PhantomData,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, row: R) -> Result<()> {
        for (values, cell) in self.columns.iter_mut().zip(row.cells()) {
            values.push(cell);
        }
        self.rows += 1;
        self.waiting += 1;
        if self.waiting == GROUP {
            self.flush()
                .with_context(|| self.path.display().to_string())?;
        }
        Ok(())
    }

    /// Number of rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes a row group.
    fn flush(&mut self) -> Result<()> {
        if self.waiting == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for values in &mut self.columns {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            let levels = Some(values.levels.as_slice());
            match &mut values.of {
                Of::Ints(ints) => {
                    column
                        .typed::<Int64Type>()
                        .write_batch(ints.as_slice(), levels, None)?;
                    ints.clear();
                }
                Of::Texts(texts) => {
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(texts.as_slice(), levels, None)?;
                    texts.clear();
                }
                Of::Flags(flags) => {
                    column
                        .typed::<BoolType>()
                        .write_batch(flags.as_slice(), levels, None)?;
                    flags.clear();
                }
            }
            column.close()?;
            values.levels.clear();
        }
        group.close()?;
        self.waiting = 0;
        Ok(())
    }

    /// Completes the file.
    pub(crate) fn close(mut self) -> Result<Closed> {
        let named = self.path.display().to_string();
        let closed = || -> Result<Closed> {
            self.flush()?;
            self.writer.into_inner()?.sync_all()?;
            Ok(Closed {
                temporary: self.temporary,
                path: self.path,
                rows: self.rows,
            })
        };
        closed().with_context(|| named)
    }
}
