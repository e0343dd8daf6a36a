-- Offers no more work of a crawl; what is leased stays leased.
call('SADD', B .. ':off', take())
return 1
