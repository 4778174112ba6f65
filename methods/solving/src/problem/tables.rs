//! The tables of the nodes of a problem.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use mingle_plaintext::InputFile;
use mingle_solver::RegressionTable;

use super::{NODE, Problem, ProblemError, ProblemTask, RegressionTask, TableFileError, TableSource};

impl Problem {
    /// The tables of all nodes.
    pub(super) fn tables(
        &self,
        source: &TableSource,
        read: &ReadTable<'_>,
    ) -> Result<Vec<RegressionTable>, ProblemError> {
        let nodes = self.names.len();
        if source.deal {
            let whole = self.table(source, 0, read)?;
            return (0..nodes).map(|node| dealt(&whole, node, &self.names)).collect();
        }
        let tables =
            (0..nodes).map(|node| self.table(source, node, read)).collect::<Result<Vec<RegressionTable>, _>>()?;
        for (node, table) in tables.iter().enumerate() {
            if table.columns() != tables[0].columns() {
                return Err(ProblemError::Columns {
                    first: self.names[0].clone(),
                    other: self.names[node].clone(),
                    first_columns: tables[0].listed_columns(),
                    other_columns: table.listed_columns(),
                });
            }
        }
        Ok(tables)
    }

    /// Further tables for the sites of a robust model, such as test data: one that is dealt out, or one for each site
    /// with `{node}` in its name. `like` are the sites' own. Empty for other problems.
    ///
    /// # Errors
    /// A table cannot be used, or its columns differ from those of `like`.
    pub fn tables_like(&self, data: &str, like: &[RegressionTable]) -> Result<Vec<RegressionTable>, ProblemError> {
        let ProblemTask::Robust(task) = &self.task else { return Ok(Vec::new()) };
        let unreadable = |source| ProblemError::Unreadable { path: data.into(), source };
        let data = std::path::absolute(data).map_err(unreadable)?.to_string_lossy().into_owned();
        let source = TableSource { deal: !data.contains(NODE), data, selection: task.source.selection.clone() };
        let tables = self.tables(&source, &|path| task.read(path))?;
        if let (Some(own), Some(other)) = (like.first(), tables.first())
            && own.columns() != other.columns()
        {
            return Err(ProblemError::Columns {
                first: self.names[0].clone(),
                other: "the test data".to_owned(),
                first_columns: own.listed_columns(),
                other_columns: other.listed_columns(),
            });
        }
        Ok(tables)
    }

    /// The table of one node.
    pub(super) fn table_of(
        &self,
        source: &TableSource,
        node: usize,
        read: &ReadTable<'_>,
    ) -> Result<RegressionTable, ProblemError> {
        match source.deal {
            true => dealt(&self.table(source, 0, read)?, node, &self.names),
            false => self.table(source, node, read),
        }
    }

    fn table(&self, source: &TableSource, node: usize, read: &ReadTable<'_>) -> Result<RegressionTable, ProblemError> {
        let name = &self.names[node];
        if source.data.contains(NODE) && Path::new(name).components().count() != 1 {
            return Err(ProblemError::FileName { name: name.clone() });
        }
        let beside = self.file.parent().unwrap_or(Path::new("."));
        let path = beside.join(source.data.replace(NODE, name));
        read(&path).map_err(|source| ProblemError::Table { path, source })
    }
}

/// A reader of tables for one kind of problem.
type ReadTable<'a> = dyn Fn(&PathBuf) -> Result<RegressionTable, TableFileError> + 'a;

fn dealt(whole: &RegressionTable, node: usize, names: &[String]) -> Result<RegressionTable, ProblemError> {
    let table = whole.dealt(node, names.len());
    if table.row_count() == 0 {
        return Err(ProblemError::TooFewRows { rows: whole.row_count(), nodes: names.len() });
    }
    Ok(table)
}

/// The rows of a table, of the columns that the problem selects.
pub(super) fn read_rows(path: &Path, source: &TableSource) -> Result<RegressionTable, TableFileError> {
    Ok(RegressionTable::read(BufReader::new(InputFile::open(path)?), &source.selection)?)
}

/// The rows of a table whose columns fit the regression.
pub(super) fn read_table(path: &Path, task: &RegressionTask) -> Result<RegressionTable, TableFileError> {
    let table = read_rows(path, &task.source)?;
    task.regression.check(table.columns())?;
    Ok(table)
}
