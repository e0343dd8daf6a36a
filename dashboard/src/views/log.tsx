// Operator: what operators did.
import { useList } from '../lib/resource'
import { clock } from '../lib/time'
import { Empty, Text, Title } from '../ui/basics'
import { ListTable, type Column } from '../ui/table'
import type { Action } from '../types'

const columns: Column<Action>[] = [
  { head: 'Time', cell: (a) => <span class="num">{clock(a.at)}</span> },
  { head: 'Action', cell: (a) => <strong><Text>{a.action}</Text></strong> },
  { head: 'On', main: true, cell: (a) => <><Text>{a.target}</Text>{a.detail != null && a.detail !== '' && <div class="small muted"><Text>{typeof a.detail === 'string' ? a.detail : JSON.stringify(a.detail)}</Text></div>}</> },
  { head: 'By key', cell: (a) => <code><Text>{a.key}</Text></code> },
  { head: 'From', cell: (a) => <Text>{a.remote}</Text> },
]

export function OperatorLog() {
  const list = useList<Action>('/v1/operator-log', (a) => a.id, 10_000)
  return (
    <>
      <Title text="Operator log" />
      <ListTable list={list} caption="What operators did, newest first" columns={columns} id={(a) => a.id} empty={<Empty title="No operator has done anything yet."><p>Tenants made, keys revoked, configuration reloaded: each is written here with the key that did it.</p></Empty>} />
    </>
  )
}
