//! Columns of the table of products, its look, and the order by a column.

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Column {
    Name,
    Code,
    State,
    Orderable,
    PayoutType,
    Currency,
    Amounts,
    Discount,
    Countries,
    Categories,
    Changed,
}

impl Column {
    /// All columns, in the order of the table.
    pub(super) const ALL: [Self; 11] = [
        Self::Name,
        Self::Code,
        Self::State,
        Self::Orderable,
        Self::PayoutType,
        Self::Currency,
        Self::Amounts,
        Self::Discount,
        Self::Countries,
        Self::Categories,
        Self::Changed,
    ];

    /// Returns the name in URLs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Code => "code",
            Self::State => "state",
            Self::Orderable => "orderable",
            Self::PayoutType => "type",
            Self::Currency => "currency",
            Self::Amounts => "amounts",
            Self::Discount => "discount",
            Self::Countries => "countries",
            Self::Categories => "categories",
            Self::Changed => "changed",
        }
    }

    /// Returns the column with this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// Returns the heading.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Name => "Name",
            Self::Code => "Code",
            Self::State => "State",
            Self::Orderable => "Orderable",
            Self::PayoutType => "Type",
            Self::Currency => "Currency",
            Self::Amounts => "Amounts",
            Self::Discount => "Discount",
            Self::Countries => "Countries",
            Self::Categories => "Categories",
            Self::Changed => "Changed",
        }
    }

    /// Returns what the order by the column goes by, if the heading doesn't say it.
    pub(super) fn sort_hint(self) -> Option<&'static str> {
        match self {
            Self::Amounts => Some("by the lowest amount, whatever its currency"),
            Self::Countries => Some("by the number of countries"),
            Self::Categories => Some("by the number of categories"),
            Self::Changed => Some("by the last revision that changed the product"),
            _ => None,
        }
    }

    /// Returns true if its values are numbers, or begin with one.
    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Amounts | Self::Discount)
    }

    /// Returns true if the table always has it: the name has the link.
    pub(super) fn is_fixed(self) -> bool {
        self == Self::Name
    }

    /// Returns true if the table has it unless others were chosen.
    pub(super) fn is_default(self) -> bool {
        !matches!(self, Self::PayoutType | Self::Currency | Self::Categories)
    }
}

/// Columns that were chosen; none are the default ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Columns(Vec<Column>);

impl Columns {
    /// Returns these columns in the order of the table, with those that it always has.
    pub(super) fn of(columns: &[Column]) -> Self {
        let is_chosen = |column: &Column| columns.contains(column) || column.is_fixed();
        let chosen: Vec<Column> = Column::ALL.into_iter().filter(is_chosen).collect();
        let is_usual = |column: &Column| chosen.contains(column) == column.is_default();
        match columns.is_empty() || Column::ALL.iter().all(is_usual) {
            true => Self::default(),
            false => Self(chosen),
        }
    }

    /// Returns the chosen columns; none if they are the default ones.
    pub(super) fn chosen(&self) -> &[Column] {
        &self.0
    }

    /// Returns the columns of the table, in its order.
    pub(super) fn shown(&self) -> Vec<Column> {
        let all = Column::ALL.into_iter();
        match self.0.is_empty() {
            true => all.filter(|column| column.is_default()).collect(),
            false => self.0.clone(),
        }
    }

    /// Returns true if the table has a column.
    pub(super) fn has(&self, column: Column) -> bool {
        match self.0.is_empty() {
            true => column.is_default(),
            false => self.0.contains(&column),
        }
    }
}

/// Look of the products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Look {
    #[default]
    Table,
    Cards,
}

/// Direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Direction {
    #[default]
    Ascending,
    Descending,
}

/// An order of products. Equal ones ascend by code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sort {
    pub(super) column: Column,
    pub(super) direction: Direction,
}

impl Default for Sort {
    fn default() -> Self {
        Self {
            column: Column::Code,
            direction: Direction::Ascending,
        }
    }
}

impl Sort {
    /// Parses `name` or `-name`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, direction) = match text.strip_prefix('-') {
            Some(name) => (name, Direction::Descending),
            None => (text, Direction::Ascending),
        };
        let column = Column::of_name(name)?;
        Some(Self { column, direction })
    }

    /// Returns the text that [`parse`](Self::parse) reads.
    pub(super) fn text(self) -> String {
        let sign = match self.direction {
            Direction::Ascending => "",
            Direction::Descending => "-",
        };
        format!("{sign}{}", self.column.name())
    }

    /// Returns the order that the heading of a column leads to: ascending, or the other direction if it is sorted by already.
    pub(super) fn by(self, column: Column) -> Self {
        let direction = match self.column == column && self.direction == Direction::Ascending {
            true => Direction::Descending,
            false => Direction::Ascending,
        };
        Self { column, direction }
    }

    /// Returns true if products can be jumped to by a beginning of their code or name.
    pub(super) fn has_jump(self) -> bool {
        matches!(self.column, Column::Code | Column::Name)
    }
}
