// Real tables. On a phone each row becomes a card whose cells carry their
// column's name; the roles are spelled out because changing how a table is
// laid out makes some browsers forget that it is one.
import type { ComponentChildren } from 'preact'
import { Loading, ProblemBox } from './basics'
import type { Listing, Resource } from '../lib/resource'

export interface Column<T> {
  head: string
  cell: (row: T) => ComponentChildren
  num?: boolean // a figure: to the right, digits of one width
  main?: boolean // what the row is about: takes the room there is
  long?: boolean // a sentence
}

interface Props<T> {
  caption: string
  columns: Column<T>[]
  rows: T[]
  id: (row: T, i: number) => string | number
}

export function Table<T>({ caption, columns, rows, id }: Props<T>) {
  const cls = (c: Column<T>) => (c.num ? 'num ' : '') + (c.main ? 'main' : c.long ? 'long' : '')
  return (
    <table role="table">
      <caption class="sr">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">{columns.map((c) => <th key={c.head} role="columnheader" scope="col" class={cls(c)}>{c.head}</th>)}</tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((r, i) => (
          <tr key={id(r, i)} role="row">
            {columns.map((c) => <td key={c.head} role="cell" class={cls(c)} data-head={c.head}>{c.cell(r)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** A table of a list of the API: loading, problem, nothing there, load more. */
export function ListTable<T>({ list, empty, ...table }: Omit<Props<T>, 'rows'> & { list: Listing<T>; empty: ComponentChildren }) {
  if (list.loading) return <Loading />
  return (
    <>
      <ProblemBox problem={list.problem} retry={list.reload} />
      {list.items.length > 0 ? <Table {...table} rows={list.items} /> : !list.problem && empty}
      {list.more && <p class="more"><button type="button" onClick={list.more}>Load more</button> <span class="muted">{list.items.length} shown</span></p>}
    </>
  )
}

/** What a view shows until its data is there. */
export function Wait<T>({ of, children }: { of: Resource<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      <ProblemBox problem={of.problem} retry={of.reload} />
      {of.data !== undefined ? children(of.data) : of.loading && <Loading />}
    </>
  )
}
